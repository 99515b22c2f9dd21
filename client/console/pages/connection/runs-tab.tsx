import { Button } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { type RouterOutputs, trpc } from '../../api.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Bars } from '../../components/bars.tsx';
import { formatCompact, formatCount, formatDuration, pluralize } from '../../components/format.ts';
import { Empty } from '../../components/empty.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Section } from '../../components/page.tsx';
import { labelOf, Status, toneOf, wordsOf } from '../../components/status.tsx';
import type { Connection } from '../../answers.ts';

type Run = RouterOutputs['runs']['list'][number];

const PAGE_SIZE = 30;
const CHARTED = 30;

export function RunsTab({ connection }: { connection: Connection }) {
  const [limit, setLimit] = useState(PAGE_SIZE);
  const runs = useQuery(
    trpc.runs.list.queryOptions(
      { connection_id: connection.id, limit },
      { placeholderData: keepPreviousData, refetchInterval: connection.active_run_id === null ? 10_000 : 2_000 },
    ),
  );
  return (
    <QueryView query={runs}>
      {(list) =>
        list.length === 0 ? (
          <Empty icon="play" title="No runs yet">
            <p>Select “Run now” to start the first run, or set a schedule in the settings.</p>
          </Empty>
        ) : (
          <div className="stack">
            <Charts runs={list.slice(0, CHARTED).toReversed()} />
            <section className="card" aria-label="Runs">
              <RunTable runs={list} />
              {list.length === limit && (
                <Button
                  variant="subtle"
                  fullWidth
                  loading={runs.isFetching}
                  onClick={() => setLimit(limit + 2 * PAGE_SIZE)}
                >
                  Show older runs
                </Button>
              )}
            </section>
          </div>
        )
      }
    </QueryView>
  );
}

const Charts = ({ runs }: { runs: Run[] }) => (
  <div className="columns">
    <Section title="Duration" lead={runs.length === 1 ? 'Latest run' : `Last ${runs.length} runs`}>
      <Bars
        label="Duration of each run"
        format={(value) => formatDuration(Math.round(value))}
        bars={runs.map((run) => bar(run, run.duration_ms ?? 0, formatDuration(run.duration_ms)))}
      />
    </Section>
    <Section
      title="Rows loaded"
      lead={`${pluralize(
        runs.reduce((sum, run) => sum + run.rows_loaded, 0),
        'row',
      )} in total`}
    >
      <Bars
        label="Rows of each run"
        format={formatCompact}
        bars={runs.map((run) => bar(run, run.rows_loaded, pluralize(run.rows_loaded, 'row')))}
      />
    </Section>
  </div>
);

const bar = ({ id, number, status }: Run, value: number, text: string) => ({
  key: id,
  label: `#${number}`,
  title: `#${number} ${wordsOf(status)}: ${text}`,
  parts: [{ value, tone: toneOf(status) }],
});

const RunTable = ({ runs }: { runs: Run[] }) => (
  // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
  <div className="table-frame" tabIndex={0} role="region" aria-label="Run history">
    <table className="table stacked">
      <thead>
        <tr>
          <th>Run</th>
          <th>Status</th>
          <th>Started</th>
          <th>Triggered by</th>
          <th className="end">Duration</th>
          <th className="end">Rows</th>
          <th>Error</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <tr key={run.id}>
            <td>
              <Link href={`/console/connections/${run.connection_id}/runs/${run.id}`} className="number">
                #{run.number}
              </Link>
            </td>
            <td data-label="Status">
              <Status value={run.status} />
            </td>
            <td className="dimmed nowrap" data-label="Started">
              <RelativeTime at={run.started_at ?? run.created_at} />
            </td>
            <td className="dimmed nowrap" data-label="Triggered by">
              {run.triggered_by?.name ?? labelOf(run.trigger_type)}
            </td>
            <td className="end number nowrap" data-label="Duration">
              {formatDuration(run.duration_ms)}
            </td>
            <td className="end number" data-label="Rows">
              {formatCount(run.rows_loaded)}
            </td>
            <td className="dimmed" data-label={run.error ? 'Error' : undefined}>
              {run.error?.message ?? ''}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
