import { Button } from '@mantine/core';
import { useState } from 'react';
import { trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { pluralize } from '../../components/format.ts';
import { RowsTable } from '../../streams/rows-table.tsx';
import { usePermission } from '../../current-user.ts';
import { useAction } from '../../use-action.ts';
import type { RunProgress } from './use-run-progress.ts';

interface RowsAtDestinationProps {
  stream: RunProgress['stream_runs'][number];
  /** Those of the table, or those that the stream run kept beside it. */
  rows: 'loaded' | 'rejected';
}

const LABELS = { loaded: 'View rows at the destination', rejected: 'View the rows kept at the destination' };
const LIMITS = { loaded: 10, rejected: 100 };

/** The first rows of the table as the destination stores them, on request. */
export function RowsAtDestination({ stream, rows }: RowsAtDestinationProps) {
  const may = usePermission('data.preview_destination');
  const [isOpen, setOpen] = useState(false);
  const preview = useAction(trpc.runs.previewTable, { failed: null, refresh: [] });
  const { id, connection_id, connection_run_id } = stream;
  const toggle = () => {
    if (!isOpen) preview.mutate({ connection_id, connection_run_id, stream_run_id: id, rows, limit: LIMITS[rows] });
    setOpen(!isOpen);
  };
  return (
    <section className="stack" aria-label={`Rows of ${stream.destination_table}`}>
      <Button
        className="fit"
        size="compact-xs"
        variant="default"
        aria-expanded={isOpen}
        disabled={!may}
        title={may ? undefined : 'Requires the permission data.preview_destination'}
        loading={preview.isPending}
        onClick={toggle}
      >
        {isOpen ? 'Hide rows' : LABELS[rows]}
      </Button>
      {isOpen && preview.error && <Failure title="Rows not read" error={preview.error} />}
      {isOpen && preview.data && (
        <>
          <p className="dimmed" role="status">
            First {pluralize(preview.data.rows.length, 'row')} of {preview.data.table}, as stored
          </p>
          <RowsTable
            label="Rows at the destination"
            columns={preview.data.columns.map((name) => ({ name }))}
            rows={preview.data.rows}
          />
        </>
      )}
    </section>
  );
}
