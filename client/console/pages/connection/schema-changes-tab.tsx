import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { ask } from '../../api.ts';
import { useMay } from '../../me.ts';
import { Empty } from '../../parts/empty.tsx';
import { Failure } from '../../parts/failure.tsx';
import { plural } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Section } from '../../parts/page.tsx';
import { Status, wordsOf } from '../../parts/status.tsx';
import { useOrder } from '../../use-order.ts';
import type { Connection } from './connection.tsx';

/** What is different at the source from what the connection works with, to be taken over or left. */
export function SchemaChangesTab({ connection }: { connection: Connection }) {
  const changes = useQuery(ask('connections.schemaChanges', { connection_id: connection.id }));
  const mayUpdate = useMay('connections.update');
  const review = useOrder('connections.reviewSchemaChanges', { done: 'The changes were reviewed', failed: null });
  const decide = (decision: 'accept' | 'ignore') => review.mutate({ connection_id: connection.id, decision });
  return (
    <Loaded query={changes}>
      {(list) =>
        list.length === 0 ? (
          <Empty icon="check" title="Nothing to review">
            <p>
              The source is as the connection knows it. Changes of its streams and fields are found at each discovery.
            </p>
          </Empty>
        ) : (
          <Section
            title={`${plural(list.length, 'change')} of the source`}
            lead={
              list.some(({ breaking }) => breaking)
                ? 'Breaking ones keep streams from being loaded as before.'
                : 'None of them breaks what is loaded.'
            }
            actions={
              <>
                <Button
                  variant="default"
                  disabled={!mayUpdate}
                  loading={review.isPending}
                  onClick={() => decide('ignore')}
                >
                  Go on without
                </Button>
                <Button disabled={!mayUpdate} loading={review.isPending} onClick={() => decide('accept')}>
                  Take over
                </Button>
              </>
            }
          >
            {review.error && <Failure error={review.error} />}
            <ul className="lines">
              {list.map((change) => (
                <li key={JSON.stringify(change)}>
                  <b>{change.namespace ? `${change.namespace}.${change.stream_name}` : change.stream_name}</b>
                  <span>
                    {wordsOf(change.change)} {change.field_path && <code>{change.field_path.join('.')}</code>}
                  </span>
                  <span className="grow dimmed">
                    {[change.before, change.after].filter((fact) => fact !== null).join(' → ')}
                  </span>
                  <Status
                    value={change.breaking ? 'failing' : 'pending'}
                    label={change.breaking ? 'breaking' : 'harmless'}
                  />
                </li>
              ))}
            </ul>
          </Section>
        )
      }
    </Loaded>
  );
}
