import { Button, Loader } from '@mantine/core';
import { trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Empty } from '../../components/empty.tsx';
import { Failure } from '../../components/failure.tsx';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { useAction } from '../../use-action.ts';
import type { DraftState } from './draft.ts';
import type { StreamEdits } from './proposal.ts';
import { StreamSelection } from './stream-selection.tsx';
import type { Selection } from './use-selection.ts';

interface StreamsStepProps {
  draft: DraftState;
  selection: Selection;
  back: () => void;
}

/** Waits for schema discovery, then selects the streams to load. */
export function StreamsStep({ draft, selection, back }: StreamsStepProps) {
  const { source, discovery, catalog } = selection;
  const mayUpdate = usePermission('sources.update');
  const discover = useAction(trpc.account_connectors.discover, { refresh: [trpc.account_connectors.discovery] });
  if (!source) return null;
  const refreshSchema = () => discover.mutate({ account_connector_id: source.id });
  const setEdits = (edits: StreamEdits) => draft.set({ streams: { ...draft.draft.streams, [source.id]: edits } });
  return (
    <QueryView query={discovery}>
      {({ catalog_status, catalog_refreshed_at, task }) => {
        if (catalog_status === 'pending' && catalog_refreshed_at === null) {
          return <Discovering name={source.name} since={task?.created_at ?? null} />;
        }
        if (catalog_refreshed_at === null) {
          return <Undiscovered {...{ error: task?.error ?? null, refreshSchema, back }} isBusy={discover.isPending} />;
        }
        const refresh = (
          <Button
            variant="default"
            size="xs"
            leftSection={<Icon name="refresh" size={14} />}
            disabled={!mayUpdate}
            loading={catalog_status === 'pending' || discover.isPending}
            onClick={refreshSchema}
          >
            Refresh schema
          </Button>
        );
        return (
          <div className="stack">
            {catalog_status === 'failed' && task?.error && (
              <Failure title="Schema not refreshed. Showing the last known streams" error={task.error} />
            )}
            <QueryView query={catalog}>
              {() =>
                selection.rows.length === 0 ? (
                  <Empty icon="source" title="No streams found">
                    <p>Check that the credentials can read the data, and that the parameters include its schemas.</p>
                    <div className="row">
                      {refresh}
                      <Button size="xs" onClick={back}>
                        Edit parameters
                      </Button>
                    </div>
                  </Empty>
                ) : (
                  <StreamSelection
                    selection={selection}
                    setEdits={setEdits}
                    freshness={
                      <>
                        Refreshed <RelativeTime at={catalog_refreshed_at} /> {refresh}
                      </>
                    }
                  />
                )
              }
            </QueryView>
          </div>
        );
      }}
    </QueryView>
  );
}

const Discovering = ({ name, since }: { name: string; since: string | null }) => (
  <div className="empty" role="status">
    <Loader aria-hidden="true" />
    <h2>Reading the schema of “{name}”</h2>
    <p>
      Large sources can take a few minutes. You can leave this page: discovery continues and your selection is kept.
    </p>
    {since && (
      <p className="dimmed">
        Started <RelativeTime at={since} />
      </p>
    )}
  </div>
);

interface UndiscoveredProps {
  error: { code: string; message: string } | null;
  isBusy: boolean;
  refreshSchema: () => void;
  back: () => void;
}

const Undiscovered = ({ error, isBusy, refreshSchema, back }: UndiscoveredProps) => (
  <div className="empty" role="status">
    <span className="empty-icon">
      <Icon name={error ? 'alert' : 'source'} size={26} />
    </span>
    <h2>{error ? 'Schema discovery failed' : 'No schema yet'}</h2>
    {error && (
      <>
        <p>{error.message}</p>
        <p className="failure-codes">
          Code <code>{error.code}</code>
        </p>
        <p>Check what the user of the source can read, then retry. You can also edit the parameters.</p>
      </>
    )}
    <div className="row">
      <Button variant="default" onClick={back}>
        Edit parameters
      </Button>
      <Button loading={isBusy} onClick={refreshSchema}>
        {error ? 'Retry' : 'Refresh schema'}
      </Button>
    </div>
  </div>
);
