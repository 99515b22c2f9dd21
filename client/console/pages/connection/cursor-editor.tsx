import { Button, TextInput } from '@mantine/core';
import { useState } from 'react';
import { trpc } from '../../api.ts';
import { useMay } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { useAction } from '../../use-action.ts';
import type { Connection } from './connection.tsx';

interface CursorEditorProps {
  connection: Connection;
  stream: Connection['streams'][number];
}

/** Where a stream has got to, and how to move that without loading all of it anew. */
export function CursorEditor({ connection, stream }: CursorEditorProps) {
  const mayUpdate = useMay('connections.update');
  const [value, setValue] = useState('');
  const move = useAction(trpc.connections.update, {
    done: `The cursor of ${stream.name} was moved`,
    after: () => setValue(''),
  });
  const reset = (to: string | null) =>
    move.mutate({ connection_id: connection.id, reset_cursor: [{ stream_id: stream.id, value: to }] });
  return (
    <div className="stack">
      <h3>Cursor</h3>
      <p className="dimmed">
        {stream.cursor_value === null ? (
          'Not set: the next run reads from the beginning.'
        ) : (
          <>
            <code>{stream.cursor_value}</code>, <RelativeTime at={stream.cursor_updated_at} />
          </>
        )}
      </p>
      <div className="row-end">
        <TextInput
          className="cursor-field"
          classNames={{ input: 'mono' }}
          label="Move it to"
          placeholder={stream.cursor_value ?? '2026-01-31T00:00:00Z'}
          value={value}
          disabled={!mayUpdate}
          onChange={(event) => setValue(event.currentTarget.value)}
        />
        <Button
          variant="default"
          disabled={!mayUpdate || value.trim() === ''}
          loading={move.isPending}
          onClick={() => reset(value.trim())}
        >
          Move
        </Button>
        <Confirm
          title={`Read ${stream.name} from the beginning?`}
          action="Reset the cursor"
          onConfirm={() => reset(null)}
          trigger={(open) => (
            <Button variant="subtle" color="red" disabled={!mayUpdate || stream.cursor_value === null} onClick={open}>
              Reset
            </Button>
          )}
        >
          The next run reads every row of it again.
        </Confirm>
      </div>
    </div>
  );
}
