import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { trpc } from '../../api.ts';
import { pluralize } from '../../components/format.ts';
import { QueryView } from '../../components/query-view.tsx';
import { RowsAtDestination } from './rows-at-destination.tsx';
import type { RunProgress } from './use-run-progress.ts';

type StreamRun = RunProgress['stream_runs'][number];
const SHOWN = 100;

/** Rows of a stream run that an application rejected, with its responses, on request. */
export function RejectedRows({ stream }: { stream: StreamRun }) {
  const [isOpen, setOpen] = useState(false);
  const { id, connection_id, connection_run_id, stream_name } = stream;
  const key = { connection_id, connection_run_id, stream_run_id: id, limit: SHOWN };
  const rows = useQuery(trpc.runs.rejectedRows.queryOptions(key, { enabled: isOpen }));
  return (
    <section className="stack" aria-label={`Rejected rows of ${stream_name}`}>
      <Button size="compact-xs" variant="default" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? 'Hide rejected rows' : `Show ${pluralize(stream.rows_rejected, 'rejected row')}`}
      </Button>
      {isOpen && (
        <QueryView query={rows}>
          {(found) =>
            found.length === 0 ? <RowsAtDestination stream={stream} rows="rejected" /> : <RejectedTable rows={found} />
          }
        </QueryView>
      )}
    </section>
  );
}

interface Row {
  id: string;
  operation: string;
  key: string;
  message: string;
  status: number | null;
  answer: string | null;
}

const RejectedTable = ({ rows }: { rows: Row[] }) => (
  // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
  <div className="table-frame" tabIndex={0} role="region" aria-label="Rejected rows">
    <table className="table compact">
      <thead>
        <tr>
          <th>Key</th>
          <th>Operation</th>
          <th>Status</th>
          <th>Response</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ id, operation, key, message, status, answer }) => (
          <tr key={id}>
            <td>
              <code>{key}</code>
            </td>
            <td>{operation}</td>
            <td className="number">{status}</td>
            <td title={answer ?? undefined}>{message}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
