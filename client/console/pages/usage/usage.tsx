import { Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useSearchParams } from 'wouter';
import { trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { Bars } from '../../components/bars.tsx';
import { Empty } from '../../components/empty.tsx';
import { formatBytes, formatCompact, formatCount, formatDay, pluralize } from '../../components/format.ts';
import { QueryView } from '../../components/query-view.tsx';
import { optionsOf } from '../../components/options.ts';
import { Page, Section } from '../../components/page.tsx';
import { ConnectionUsage } from './connection-usage.tsx';
import { PlanLimits } from './plan-limits.tsx';
import type { Usage } from '../../answers.ts';

const RANGES = optionsOf({
  current_billing_period: 'Current billing period',
  previous_billing_period: 'Previous billing period',
  last_7_days: 'Last 7 days',
  last_30_days: 'Last 30 days',
  last_90_days: 'Last 90 days',
  year_to_date: 'Year to date',
});
type Range = (typeof RANGES)[number]['value'];

/** Loaded rows, credits used and what the plan has left. */
export default function UsagePage() {
  const mayRead = usePermission('billing.read');
  const [search, setSearch] = useSearchParams();
  const date_range = RANGES.find(({ value }) => value === search.get('range'))?.value ?? 'current_billing_period';
  const range = (
    <Select
      aria-label="Date range"
      data={RANGES}
      value={date_range}
      allowDeselect={false}
      onChange={(value) => setSearch(value ? { range: value } : {})}
    />
  );
  return (
    <Page title="Usage" lead="Rows and credits, by UTC day" actions={mayRead && range}>
      {mayRead ? (
        <UsageOf date_range={date_range} />
      ) : (
        <Empty icon="usage" title="You do not have access to usage">
          <p>Viewing usage requires the billing.read permission, which the Administrator and Billing roles include.</p>
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
  const free = totals.rows_free > 0 ? `, ${formatCount(totals.rows_free)} of them free` : '';
  return `${formatDay(start_date)} to ${formatDay(end_date)}: ${pluralize(totals.rows_total, 'row')}${free}`;
}

function Tiles({ usage: { totals, projection } }: { usage: Usage }) {
  const { credits_included, credits_remaining } = totals;
  const share = totals.runs === 0 ? null : Math.round((totals.succeeded_runs / totals.runs) * 100);
  const others = totals.runs - totals.succeeded_runs - totals.failed_runs;
  return (
    <dl className="tiles usage-tiles">
      <Tile name="Rows" value={formatCompact(totals.rows_total)} note={formatBytes(totals.bytes_loaded)} />
      <Tile
        name="Credits"
        value={formatCompact(totals.credits_used)}
        note={credits_included === null ? 'Unlimited' : `${formatCompact(credits_remaining ?? 0)} left in this period`}
        tone={projection?.will_exceed ? 'warn' : undefined}
      />
      <Tile name="Runs" value={formatCount(totals.runs)} note={share === null ? 'None yet' : `${share} % succeeded`} />
      <Tile
        name="Failed runs"
        value={formatCount(totals.failed_runs)}
        note={
          others === 0
            ? `of ${pluralize(totals.connections, 'connection')}`
            : `${formatCount(others)} stopped or partial`
        }
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
  const name = (date: string) => (granularity === 'day' ? formatDay(date) : month.format(new Date(`${date}T12:00:00`)));
  return (
    <Bars
      label={`Rows loaded per ${granularity}`}
      format={formatCompact}
      bars={series.map(({ date, rows_free, rows_paid, credits_used }) => ({
        key: date,
        label: name(date),
        title: `${name(date)}: ${pluralize(rows_free + rows_paid, 'row')}, ${pluralize(credits_used, 'credit')}`,
        parts: [
          { value: rows_paid, tone: 'accent' },
          { value: rows_free, tone: 'calm' },
        ],
      }))}
    />
  );
}
