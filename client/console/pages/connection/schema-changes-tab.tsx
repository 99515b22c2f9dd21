import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { useMay } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Empty } from '../../components/empty.tsx';
import { Failure } from '../../components/failure.tsx';
import { plural } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Section } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';
import { useAction } from '../../use-action.ts';
import type { Connection } from './connection.tsx';

type Change = RouterOutputs['connections']['schemaChanges'][number];
const LOOK_EVERY_MS = 5_000;

/** What is different at the source from what the connection works with, to be taken over or left. */
export function SchemaChangesTab({ connection }: { connection: Connection }) {
  const { id, catalog_refreshed_at } = connection;
  const changes = useQuery(
    trpc.connections.schemaChanges.queryOptions({ connection_id: id }, { refetchInterval: LOOK_EVERY_MS }),
  );
  const lead = (
    <>
      The source was last looked up <RelativeTime at={catalog_refreshed_at} never="when it was made" />
    </>
  );
  return (
    <QueryView query={changes}>
      {(list) =>
        list.length === 0 ? (
          <Section title="Changes of the source" lead={lead} actions={<LookUp connection={connection} />}>
            <Empty icon="check" title="Nothing to review">
              <p>The source is as the connection knows it.</p>
            </Empty>
          </Section>
        ) : (
          <Waiting connection={connection} changes={list} lead={lead} />
        )
      }
    </QueryView>
  );
}

function LookUp({ connection }: { connection: Connection }) {
  const mayUpdate = useMay('connections.update');
  const discover = useAction(trpc.connections.updateCatalog, { done: 'The streams of the source are looked up anew' });
  return (
    <Button
      variant="default"
      leftSection={<Icon name="refresh" size={16} />}
      disabled={!mayUpdate}
      loading={discover.isPending}
      onClick={() => discover.mutate({ connection_id: connection.id })}
    >
      Look for changes
    </Button>
  );
}

interface WaitingProps {
  connection: Connection;
  changes: Change[];
  lead: ReactNode;
}

function Waiting({ connection, changes, lead }: WaitingProps) {
  const mayUpdate = useMay('connections.update');
  const review = useAction(trpc.connections.reviewSchemaChanges, {
    done: 'The changes were reviewed',
    failed: null,
  });
  const decide = (decision: 'accept' | 'ignore') => review.mutate({ connection_id: connection.id, decision });
  const isDeciding = (decision: 'accept' | 'ignore') => review.isPending && review.variables.decision === decision;
  const streams = Map.groupBy(changes, ({ namespace, stream_name }) =>
    namespace ? `${namespace}.${stream_name}` : stream_name,
  );
  return (
    <Section
      title={`${plural(changes.length, 'change')} of the source`}
      lead={lead}
      actions={<LookUp connection={connection} />}
    >
      <div className="stack">
        {[...streams].map(([name, some]) => (
          <section key={name} className="schema-changes" aria-label={name}>
            <h3>{name}</h3>
            <ul className="lines">
              {some.map((change) => (
                <ChangeLine key={JSON.stringify(change)} change={change} />
              ))}
            </ul>
          </section>
        ))}
        {review.error && <Failure title="The changes were not taken over" error={review.error} />}
        <div className="form-foot">
          <p className="dimmed grow">
            Rows that were loaded stay as they are. What is gone at the source is given up either way.
            {connection.status === 'auto_disabled' && ' After the review the connection runs again.'}
          </p>
          <Button
            variant="default"
            disabled={!mayUpdate || review.isPending}
            loading={isDeciding('ignore')}
            onClick={() => decide('ignore')}
          >
            Go on without
          </Button>
          <Button
            disabled={!mayUpdate || review.isPending}
            loading={isDeciding('accept')}
            onClick={() => decide('accept')}
          >
            Take over
          </Button>
        </div>
      </div>
    </Section>
  );
}

/** What happened, and what each decision makes of it. */
const WORDS: Record<Change['change'], { what: string; comes: string }> = {
  stream_added: { what: 'New stream', comes: 'Taken over, it is loaded from the next run on; else it stays out.' },
  stream_removed: { what: 'Stream is gone', comes: 'It is loaded no more. Its table stays at the destination.' },
  stream_changed: { what: 'Stream changed', comes: 'Taken over, it is loaded as it is now.' },
  field_added: { what: 'New field', comes: 'Taken over, it is loaded from the next run on; else it stays out.' },
  field_removed: { what: 'Field is gone', comes: 'Its column stays at the destination and gets no more values.' },
  field_type_changed: { what: 'Type changed', comes: 'It is loaded with its new type from the next run on.' },
  primary_key_changed: { what: 'Primary key changed', comes: 'Taken over, rows are told apart by the new one.' },
  cursor_changed: { what: 'Cursor changed', comes: 'Taken over, the stream is read from its beginning.' },
};

function ChangeLine({ change: { change, field_path, before, after, breaking } }: { change: Change }) {
  const { what, comes } = WORDS[change];
  const facts = [before, after].filter((fact) => fact !== null).join(' → ');
  return (
    <li>
      <span className="grow">
        {what} {field_path && <code>{field_path.join('.')}</code>} {facts && <span className="dimmed">{facts}</span>}
        <span className="dimmed schema-change-comes">{comes}</span>
      </span>
      <Status value={breaking ? 'failing' : 'pending'} label={breaking ? 'breaking' : 'harmless'} />
    </li>
  );
}
