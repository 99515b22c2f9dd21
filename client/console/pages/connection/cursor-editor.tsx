import { Button, TextInput } from '@mantine/core';
import { useState } from 'react';
import { trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { useAction } from '../../use-action.ts';
import type { Connection } from '../../answers.ts';

interface CursorEditorProps {
  connection: Connection;
  stream: Connection['streams'][number];
}

/** The stored cursor of a stream, which can be moved or reset. */
export function CursorEditor({ connection, stream }: CursorEditorProps) {
  const mayUpdate = usePermission('connections.update');
  const [value, setValue] = useState('');
  const update = useAction(trpc.connections.update, {
    done: `Cursor of ${stream.name} updated`,
    failed: 'Cursor not updated',
    after: () => setValue(''),
  });
  const reset = (to: string | null) =>
    update.mutate({ connection_id: connection.id, reset_cursor: [{ stream_id: stream.id, value: to }] });
  return (
    <div className="stack">
      <h3>Cursor</h3>
      <p className="dimmed">
        {stream.cursor_value === null ? (
          'Not set. The next run reads from the beginning.'
        ) : (
          <>
            <code>{stream.cursor_value}</code>, updated <RelativeTime at={stream.cursor_updated_at} />
          </>
        )}
      </p>
      <div className="row-end">
        <TextInput
          className="cursor-field"
          classNames={{ input: 'mono' }}
          label="New cursor value"
          placeholder={stream.cursor_value ?? '2026-01-31T00:00:00Z'}
          value={value}
          disabled={!mayUpdate}
          onChange={(event) => setValue(event.currentTarget.value)}
        />
        <Button
          variant="default"
          disabled={!mayUpdate || value.trim() === ''}
          loading={update.isPending}
          onClick={() => reset(value.trim())}
        >
          Set cursor
        </Button>
        <Confirm
          title={`Reset the cursor of ${stream.name}?`}
          action="Reset cursor"
          onConfirm={() => reset(null)}
          trigger={(open) => (
            <Button variant="subtle" color="red" disabled={!mayUpdate || stream.cursor_value === null} onClick={open}>
              Reset cursor
            </Button>
          )}
        >
          The next run reads every row of this stream again.
        </Confirm>
      </div>
    </div>
  );
}
