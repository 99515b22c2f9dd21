import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { type RouterOutputs, trpc } from '../../api.ts';
import { formatCompact, formatCount } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Section } from '../../components/page.tsx';

type Row = RouterOutputs['billing']['connectionUsage'][number];

const PAGE = 25;

/** Usage by connection, largest first. */
export function ConnectionUsage({ start_date, end_date }: { start_date: string; end_date: string }) {
  const [limit, setLimit] = useState(PAGE);
  const usage = useQuery(trpc.billing.connectionUsage.queryOptions({ start_date, end_date, limit }));
  const connectors = useQuery(trpc.connectors.list.queryOptions(undefined, { staleTime: Infinity }));
  const names = new Map(connectors.data?.map(({ name, display_name }) => [name, display_name]));
  const nameOf = (connector_name: string) => names.get(connector_name) ?? connector_name;
  return (
    <Section title="By connection" lead="Largest first. Change compares with the preceding period of the same length.">
      <QueryView query={usage}>
        {(rows) =>
          rows.length === 0 ? (
            <p className="dimmed">No rows loaded in this period</p>
          ) : (
            <div className="stack">
              <Table rows={rows} nameOf={nameOf} />
              {rows.length === limit && (
                <div className="form-foot">
                  <Button variant="default" onClick={() => setLimit(limit + PAGE)}>
                    Show more
                  </Button>
                </div>
              )}
            </div>
          )
        }
      </QueryView>
    </Section>
  );
}

const Table = ({ rows, nameOf }: { rows: Row[]; nameOf: (connector_name: string) => string }) => (
  <div className="table-frame">
    <table className="table stacked">
      <thead>
        <tr>
          <th>Connection</th>
          <th className="end">Rows</th>
          <th className="end">Share</th>
          <th className="end">Credits</th>
          <th className="end">Runs</th>
          <th className="end">Change</th>
          <th>Largest streams</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.connection_id}>
            <td className="any-name">
              {row.connection_deleted ? (
                <>
                  {row.connection_name} <span className="dimmed">(deleted)</span>
                </>
              ) : (
                <Link href={`/console/connections/${row.connection_id}`}>{row.connection_name}</Link>
              )}
              <div className="dimmed">
                {nameOf(row.source_connector_name)} <Icon name="arrow" size={12} />{' '}
                {nameOf(row.destination_connector_name)}
              </div>
            </td>
            <td className="end number" data-label="Rows">
              {formatCount(row.rows_total)}
            </td>
            <td className="end number nowrap" data-label="Share">
              {formatShare(row.percent_of_total)} %
            </td>
            <td className="end number" data-label="Credits">
              {formatCount(row.credits_used)}
            </td>
            <td className="end number" data-label="Runs">
              {formatCount(row.runs)}
            </td>
            <td className="end number nowrap" data-label="Change">
              {changeOf(row.previous_period_change_percent)}
            </td>
            <td className="dimmed" data-label="Largest streams">
              {row.streams
                .slice(0, 3)
                .map(({ stream_name, rows: of }) => `${stream_name} ${formatCompact(of)}`)
                .join(', ')}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

const formatShare = (percent: number) => percent.toFixed(1);

const changeOf = (percent: number | null) => (percent === null ? 'New' : `${percent > 0 ? '+' : ''}${percent} %`);
