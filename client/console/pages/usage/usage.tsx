import { Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useSearchParams } from 'wouter';
import { type RouterOutputs, trpc } from '../../api.ts';
import { useMay } from '../../current-user.ts';
import { Bars } from '../../components/bars.tsx';
import { Empty } from '../../components/empty.tsx';
import { bytes, compact, count, dayOf, plural } from '../../components/format.ts';
import { QueryView } from '../../components/query-view.tsx';
import { optionsOf } from '../../components/options.ts';
import { Page, Section } from '../../components/page.tsx';
import { ConnectionUsage } from './connection-usage.tsx';
import { PlanLimits } from './plan-limits.tsx';

export type Usage = RouterOutputs['billing']['aggregatedUsage'];

const RANGES = optionsOf({
  current_billing_period: 'This billing period',
  previous_billing_period: 'The billing period before',
  last_7_days: 'Last 7 days',
  last_30_days: 'Last 30 days',
  last_90_days: 'Last 90 days',
  year_to_date: 'This year',
});
type Range = (typeof RANGES)[number]['value'];

/** What was loaded, what it cost, and how far the plan still reaches. */
export default function UsagePage() {
  const mayRead = useMay('billing.read');
  const [search, setSearch] = useSearchParams();
  const date_range = RANGES.find(({ value }) => value === search.get('range'))?.value ?? 'current_billing_period';
  const range = (
    <Select
      aria-label="Range of days"
      data={RANGES}
      value={date_range}
      allowDeselect={false}
      onChange={(value) => setSearch(value ? { range: value } : {})}
    />
  );
  return (
    <Page title="Usage" lead="Rows loaded, by UTC day" actions={mayRead && range}>
      {mayRead ? (
        <UsageOf date_range={date_range} />
      ) : (
        <Empty icon="usage" title="Usage is not open to you">
          <p>It takes the permission billing.read, which the roles Administrator and Billing have.</p>
        </Empty>
      )}
    </Page>
  );
}

function UsageOf({ date_range }: { date_range: Range }) {
  const usage = useQuery(trpc.billing.aggregatedUsage.queryOptions({ date_range }));
  return (
    <QueryView query={usage}>
      {(data) => (
        <div className="stack">
          <Tiles usage={data} />
          <Section title={data.granularity === 'day' ? 'Rows per day' : 'Rows per month'} lead={leadOf(data)}>
            <RowsChart usage={data} />
          </Section>
          <PlanLimits usage={data} />
          <ConnectionUsage start_date={data.start_date} end_date={data.end_date} />
        </div>
      )}
    </QueryView>
  );
}

function leadOf({ totals, start_date, end_date }: Usage): string {
  const free = totals.rows_free > 0 ? `, ${count(totals.rows_free)} of them free` : '';
  return `${dayOf(start_date)} to ${dayOf(end_date)}: ${plural(totals.rows_total, 'row')}${free}`;
}

function Tiles({ usage: { totals, projection } }: { usage: Usage }) {
  const { credits_included, credits_remaining } = totals;
  const share = totals.runs === 0 ? null : Math.round((totals.succeeded_runs / totals.runs) * 100);
  return (
    <dl className="tiles usage-tiles">
      <Tile name="Rows" value={compact(totals.rows_total)} note={bytes(totals.bytes_loaded)} />
      <Tile
        name="Credits"
        value={compact(totals.credits_used)}
        note={credits_included === null ? 'unlimited' : `${compact(credits_remaining ?? 0)} left in this period`}
        tone={projection?.will_exceed ? 'warn' : undefined}
      />
      <Tile name="Runs" value={count(totals.runs)} note={share === null ? 'none yet' : `${share} % succeeded`} />
      <Tile
        name="Failed runs"
        value={count(totals.failed_runs)}
        note={plural(totals.connections, 'connection')}
        tone={totals.failed_runs > 0 ? 'bad' : undefined}
      />
    </dl>
  );
}

const Tile = ({ name, value, note, tone }: { name: string; value: string; note: string; tone?: 'warn' | 'bad' }) => (
  <div className="tile" data-tone={tone}>
    <dt>{name}</dt>
    <dd>
      <b>{value}</b>
    </dd>
    <dd>{note}</dd>
  </div>
);

const month = new Intl.DateTimeFormat('en-GB', { month: 'short', year: '2-digit' });

function RowsChart({ usage: { series, granularity } }: { usage: Usage }) {
  const name = (date: string) => (granularity === 'day' ? dayOf(date) : month.format(new Date(`${date}T12:00:00`)));
  return (
    <Bars
      label={`Rows loaded per ${granularity}`}
      format={compact}
      bars={series.map(({ date, rows_free, rows_paid, credits_used }) => ({
        key: date,
        label: name(date),
        title: `${name(date)}: ${plural(rows_free + rows_paid, 'row')}, ${plural(credits_used, 'credit')}`,
        parts: [
          { value: rows_paid, tone: 'accent' },
          { value: rows_free, tone: 'calm' },
        ],
      }))}
    />
  );
}
