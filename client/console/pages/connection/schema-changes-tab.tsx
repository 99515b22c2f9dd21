import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Empty } from '../../components/empty.tsx';
import { Failure } from '../../components/failure.tsx';
import { pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Section } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';
import { useAction } from '../../use-action.ts';
import type { Connection } from '../../answers.ts';

type Change = RouterOutputs['connections']['schemaChanges'][number];
const POLL_MS = 5_000;

/** Schema changes of the source that wait for a review: accept or ignore. */
export function SchemaChangesTab({ connection }: { connection: Connection }) {
  const { id, catalog_refreshed_at } = connection;
  const changes = useQuery(
    trpc.connections.schemaChanges.queryOptions({ connection_id: id }, { refetchInterval: POLL_MS }),
  );
  const lead = (
    <>
      Schema refreshed <RelativeTime at={catalog_refreshed_at} never="when the connection was created" />
    </>
  );
  return (
    <QueryView query={changes}>
      {(list) =>
        list.length === 0 ? (
          <Section title="Schema changes" lead={lead} actions={<RefreshSchemaButton connection={connection} />}>
            <Empty icon="check" title="No changes to review">
              <p>The connection is up to date with the schema of the source.</p>
            </Empty>
          </Section>
        ) : (
          <PendingChanges connection={connection} changes={list} lead={lead} />
        )
      }
    </QueryView>
  );
}

function RefreshSchemaButton({ connection }: { connection: Connection }) {
  const mayUpdate = usePermission('connections.update');
  const refreshSchema = useAction(trpc.connections.updateCatalog, {
    done: 'Schema refresh started',
    failed: 'Schema not refreshed',
  });
  return (
    <Button
      variant="default"
      leftSection={<Icon name="refresh" size={16} />}
      disabled={!mayUpdate}
      loading={refreshSchema.isPending}
      onClick={() => refreshSchema.mutate({ connection_id: connection.id })}
    >
      Refresh schema
    </Button>
  );
}

interface PendingChangesProps {
  connection: Connection;
  changes: Change[];
  lead: ReactNode;
}

function PendingChanges({ connection, changes, lead }: PendingChangesProps) {
  const mayUpdate = usePermission('connections.update');
  const review = useAction(trpc.connections.reviewSchemaChanges, {
    done: 'Schema changes reviewed',
    failed: null,
  });
  const decide = (decision: 'accept' | 'ignore') => review.mutate({ connection_id: connection.id, decision });
  const isDeciding = (decision: 'accept' | 'ignore') => review.isPending && review.variables.decision === decision;
  const isOnlyRemovedStreams =
    connection.status === 'auto_disabled' && changes.length === 1 && changes[0]?.change === 'stream_removed';
  const streams = Map.groupBy(changes, ({ namespace, stream_name }) =>
    namespace ? `${namespace}.${stream_name}` : stream_name,
  );
  return (
    <Section
      title={pluralize(changes.length, 'schema change')}
      lead={lead}
      actions={<RefreshSchemaButton connection={connection} />}
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
        {review.error && <Failure title="Review not saved" error={review.error} />}
        <div className="form-foot">
          <p className="dimmed grow">
            Loaded rows are kept. Streams and fields that are gone at the source are no longer loaded either way.
            {connection.status === 'auto_disabled' && ' The review resumes the connection.'}
          </p>
          <Button
            variant="default"
            disabled={!mayUpdate || review.isPending}
            loading={isDeciding('ignore')}
            onClick={() => decide('ignore')}
          >
            Ignore changes
          </Button>
          <Button
            disabled={!mayUpdate || review.isPending}
            loading={isDeciding('accept')}
            onClick={() => decide('accept')}
          >
            {isOnlyRemovedStreams ? 'Remove stream and resume' : 'Accept changes'}
          </Button>
        </div>
      </div>
    </Section>
  );
}

/** The name of each change, and its effect. */
const CHANGES: Record<Change['change'], { name: string; effect: string }> = {
  stream_added: { name: 'New stream', effect: 'Loaded from the next run if accepted, otherwise left out.' },
  stream_removed: { name: 'Stream removed', effect: 'No longer loaded. Its destination table is kept.' },
  stream_changed: { name: 'Stream changed', effect: 'Loaded with its new definition if accepted.' },
  field_added: { name: 'New field', effect: 'Loaded from the next run if accepted, otherwise left out.' },
  field_removed: { name: 'Field removed', effect: 'Its destination column is kept and receives no new values.' },
  field_type_changed: { name: 'Type changed', effect: 'Loaded with the new type from the next run.' },
  primary_key_changed: { name: 'Primary key changed', effect: 'Rows are matched by the new key if accepted.' },
  cursor_changed: { name: 'Cursor changed', effect: 'The stream is read from the beginning if accepted.' },
};

function ChangeLine({ change: { change, field_path, before, after, breaking } }: { change: Change }) {
  const { name, effect } = CHANGES[change];
  const facts = [before, after].filter((fact) => fact !== null).join(' → ');
  return (
    <li>
      <span className="grow">
        {name} {field_path && <code>{field_path.join('.')}</code>} {facts && <span className="dimmed">{facts}</span>}
        <span className="dimmed schema-change-effect">{effect}</span>
      </span>
      <Status value={breaking ? 'failing' : 'pending'} label={breaking ? 'Breaking' : 'Non-breaking'} />
    </li>
  );
}
