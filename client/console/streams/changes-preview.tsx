import { Button } from '@mantine/core';
import { trpc } from '../api.ts';
import { Failure } from '../components/failure.tsx';
import { formatCount } from '../components/format.ts';
import { Icon } from '../components/icon.tsx';
import { usePermission } from '../current-user.ts';
import { useAction } from '../use-action.ts';

/** What the next run of a stream would send, on request. For streams that send only differences. */
export function ChangesPreview({ connection_id, stream_id }: { connection_id: string; stream_id: string }) {
  const may = usePermission('data.preview');
  const preview = useAction(trpc.connections.previewChanges, { failed: null, refresh: [] });
  return (
    <section className="stack" aria-label="Preview of changes">
      <div className="row">
        <Button
          size="xs"
          variant="default"
          leftSection={<Icon name="search" size={14} />}
          disabled={!may}
          title={may ? undefined : 'Requires the permission data.preview'}
          loading={preview.isPending}
          onClick={() => preview.mutate({ connection_id, stream_id })}
        >
          Preview changes
        </Button>
        <span className="dimmed" role="status">
          {preview.data && describe(preview.data)}
        </span>
      </div>
      {preview.error && <Failure title="Rows not compared" error={preview.error} />}
    </section>
  );
}

function describe({
  inserts,
  changes,
  deletes,
  rejected,
}: Record<'inserts' | 'changes' | 'deletes' | 'rejected', number>) {
  const parts = [count(inserts, 'insert'), count(changes, 'change'), count(deletes, 'delete')];
  const without = rejected === 0 ? '' : `, ${formatCount(rejected)} without a key of their own`;
  return `Would send ${formatCount(inserts + changes + deletes)}: ${parts.join(', ')}${without}`;
}

const count = (number: number, what: string) => `${formatCount(number)} ${what}${number === 1 ? '' : 's'}`;
