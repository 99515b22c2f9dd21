import { Button, Switch } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { client, type RouterInputs, trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { Failure } from '../../components/failure.tsx';
import { formatCompact, pluralize } from '../../components/format.ts';
import { SearchField } from '../../components/search-field.tsx';
import { Icon } from '../../components/icon.tsx';
import { Freshness } from '../../components/relative-time.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Section } from '../../components/page.tsx';
import { labelOf } from '../../components/status.tsx';
import { ChangesPreview } from '../../streams/changes-preview.tsx';
import { StreamEditor } from '../../streams/stream-editor.tsx';
import { useAction } from '../../use-action.ts';
import { CursorEditor } from './cursor-editor.tsx';
import type { CatalogItem, Connection } from '../../answers.ts';
import type { DestinationSyncMode, Stream, StreamEdit } from '../../streams/stream.ts';

type StreamRequest = NonNullable<RouterInputs['connections']['update']['streams']>[number];

/** Every stream with its modes, fields, filters and cursor. */
export function StreamsTab({ connection }: { connection: Connection }) {
  const catalog = useQuery(
    trpc.account_connectors.catalog.queryOptions({ account_connector_id: connection.source_id }),
  );
  const destination = useQuery(
    trpc.connectors.get.queryOptions({
      connector_type: 'destination',
      connector_name: connection.destination.connector_name,
    }),
  );
  return (
    <QueryView query={catalog}>
      {(items) => (
        <Streams
          connection={connection}
          catalog={items}
          destination_modes={destination.data?.supported_destination_sync_modes ?? []}
        />
      )}
    </QueryView>
  );
}

const nameOf = ({ namespace, name }: { namespace: string | null; name: string }) =>
  namespace === null ? name : `${namespace}.${name}`;

interface StreamsProps {
  connection: Connection;
  catalog: CatalogItem[];
  destination_modes: readonly DestinationSyncMode[];
}

function Streams({ connection, catalog, destination_modes }: StreamsProps) {
  const mayUpdate = usePermission('connections.update');
  const [edits, setEdits] = useState<Record<string, StreamEdit>>({});
  const [open, setOpen] = useState<string | null>(null);
  const [text, setText] = useState('');
  const update = useUpdate(() => setEdits({}));
  const changed = connection.streams.filter(({ id }) => edits[id]);
  const save = () =>
    update.mutate({
      connection_id: connection.id,
      streams: changed.map(({ id, name, namespace }): StreamRequest => ({ name, namespace, ...edits[id] })),
    });
  const shown = connection.streams.filter((stream) => nameOf(stream).toLowerCase().includes(text.trim().toLowerCase()));
  const selected = connection.streams.filter(({ id, selected: is }) => edits[id]?.selected ?? is).length;
  return (
    <Section
      title="Streams"
      lead={`${selected} of ${pluralize(connection.streams.length, 'stream')} selected`}
      actions={<SearchField label="Search streams" value={text} onChange={setText} />}
    >
      <ul className="stream-list">
        {shown.map((stream) => (
          <li key={stream.id}>
            <StreamLine
              stream={{ ...stream, ...edits[stream.id] }}
              isOpen={open === stream.id}
              isChanged={edits[stream.id] !== undefined}
              disabled={!mayUpdate}
              toggle={() => setOpen(open === stream.id ? null : stream.id)}
              select={(is) =>
                setEdits((before) => ({ ...before, [stream.id]: { ...before[stream.id], selected: is } }))
              }
            />
            {open === stream.id && (
              <div className="stream-details">
                <StreamEditor
                  stream={{ ...stream, ...edits[stream.id] }}
                  item={catalog.find((item) => nameOf(item) === nameOf(stream))}
                  destination_modes={destination_modes}
                  isReverse={connection.kind === 'reverse_etl'}
                  disabled={!mayUpdate}
                  preview={{
                    source_id: connection.source_id,
                    destination_id: connection.destination_id,
                    destination_schema: connection.destination_schema,
                    table_prefix: connection.table_prefix,
                  }}
                  onChange={(edit) =>
                    setEdits((before) => ({ ...before, [stream.id]: { ...before[stream.id], ...edit } }))
                  }
                />
                {stream.sync_mode === 'full_refresh' && stream.destination_sync_mode === 'append_dedup' && (
                  <ChangesPreview connection_id={connection.id} stream_id={stream.id} />
                )}
                {stream.sync_mode === 'incremental' && <CursorEditor connection={connection} stream={stream} />}
              </div>
            )}
          </li>
        ))}
      </ul>
      {update.error && <Failure title="Streams not saved" error={update.error} />}
      {changed.length > 0 && (
        <div className="form-foot sticky-foot">
          <span className="dimmed grow">{pluralize(changed.length, 'stream')} edited</span>
          <Button variant="default" onClick={() => setEdits({})}>
            Discard changes
          </Button>
          <Button loading={update.isPending} onClick={save}>
            Save changes
          </Button>
        </div>
      )}
    </Section>
  );
}

const useUpdate = (after: () => void) =>
  useAction(trpc.connections.update, {
    done: 'Streams saved',
    failed: null,
    after,
    undo: {
      input: async ({ connection_id, streams = [] }) => {
        const now = await client.connections.get.query({ connection_id });
        return { connection_id, revision: now.revision, streams: streams.map((sent) => former(now, sent)) };
      },
    },
  });

/** The service adapts modes, key and cursor to each other, so all of them go with what was sent. */
const ADAPTED = ['sync_mode', 'destination_sync_mode', 'cursor_field', 'primary_key'];

/** The stored settings of a stream that is sent. */
function former(connection: Connection, { name, namespace, ...sent }: StreamRequest): StreamRequest {
  const found = connection.streams.find((one) => nameOf(one) === nameOf({ name, namespace: namespace ?? null }));
  const stored: Record<string, unknown> = { ...found };
  const keys = new Set([...Object.keys(sent), ...ADAPTED]);
  return { name, namespace, ...Object.fromEntries([...keys].map((key) => [key, stored[key]])) };
}

interface StreamLineProps {
  stream: Stream;
  isOpen: boolean;
  isChanged: boolean;
  disabled: boolean;
  toggle: () => void;
  select: (is: boolean) => void;
}

function StreamLine({ stream, isOpen, isChanged, disabled, toggle, select }: StreamLineProps) {
  const name = nameOf(stream);
  const left = stream.fields.filter((field) => field.selected === false).length;
  const masked = stream.fields.filter(({ masking }) => masking !== undefined && masking !== 'none').length;
  return (
    <div className="stream-line">
      <Switch
        aria-label={`Select ${name}`}
        checked={stream.selected}
        disabled={disabled}
        onChange={(event) => select(event.currentTarget.checked)}
      />
      <button type="button" className="stream-toggle" aria-expanded={isOpen} onClick={toggle}>
        <span className="grow">
          <b>{name}</b> {isChanged && <em className="redacted">edited</em>}
          <span className="dimmed stream-how">
            {labelOf(stream.sync_mode)} · {labelOf(stream.destination_sync_mode)}
            {left > 0 && ` · ${pluralize(left, 'field')} excluded`}
            {masked > 0 && ` · ${masked} masked`}
            {stream.filters.length > 0 && ` · ${pluralize(stream.filters.length, 'filter')}`}
          </span>
        </span>
        <span className="dimmed stream-cursor">
          {stream.cursor_value && (
            <>
              cursor <code>{stream.cursor_value}</code>
            </>
          )}
        </span>
        <span className="dimmed number">
          {stream.selected && <Freshness at={stream.fresh_at} />}
          {stream.selected && stream.fresh_at !== null && stream.row_count_last_run !== null && ' · '}
          {stream.row_count_last_run === null ? '' : pluralize(stream.row_count_last_run, 'row', formatCompact)}
        </span>
        <Icon name="down" size={16} />
      </button>
    </div>
  );
}
