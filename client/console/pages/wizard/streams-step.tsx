import { Button, Loader } from '@mantine/core';
import { trpc } from '../../api.ts';
import { useMay } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Empty } from '../../components/empty.tsx';
import { Failure } from '../../components/failure.tsx';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { useAction } from '../../use-action.ts';
import type { DraftState } from './draft.ts';
import type { Edits } from './proposal.ts';
import { StreamChoice } from './stream-choice.tsx';
import type { Choices } from './use-choices.ts';

interface StreamsStepProps {
  draft: DraftState;
  choices: Choices;
  back: () => void;
}

/** What the source has, once it was discovered, and what of it is loaded. */
export function StreamsStep({ draft, choices, back }: StreamsStepProps) {
  const { source, discovery, catalog } = choices;
  const mayUpdate = useMay('sources.update');
  const discover = useAction(trpc.account_connectors.discover, { refresh: [trpc.account_connectors.discovery] });
  if (!source) return null;
  const again = () => discover.mutate({ account_connector_id: source.id });
  const setEdits = (edits: Edits) => draft.set({ streams: { ...draft.draft.streams, [source.id]: edits } });
  return (
    <QueryView query={discovery}>
      {({ catalog_status, catalog_refreshed_at, task }) => {
        if (catalog_status === 'pending' && catalog_refreshed_at === null) {
          return <Discovering name={source.name} since={task?.created_at ?? null} />;
        }
        if (catalog_refreshed_at === null) {
          return <Undiscovered {...{ error: task?.error ?? null, again, back }} isBusy={discover.isPending} />;
        }
        const refresh = (
          <Button
            variant="default"
            size="xs"
            leftSection={<Icon name="refresh" size={14} />}
            disabled={!mayUpdate}
            loading={catalog_status === 'pending' || discover.isPending}
            onClick={again}
          >
            Look anew
          </Button>
        );
        return (
          <div className="stack">
            {catalog_status === 'failed' && task?.error && (
              <Failure title="The streams could not be looked up anew; these are the last known" error={task.error} />
            )}
            <QueryView query={catalog}>
              {() =>
                choices.rows.length === 0 ? (
                  <Empty icon="source" title="The source has no streams">
                    <p>What the credentials may read, and which schemas the parameters name, decides what is found.</p>
                    <div className="row">
                      {refresh}
                      <Button size="xs" onClick={back}>
                        To the parameters
                      </Button>
                    </div>
                  </Empty>
                ) : (
                  <StreamChoice
                    choices={choices}
                    setEdits={setEdits}
                    found={
                      <>
                        found <RelativeTime at={catalog_refreshed_at} /> {refresh}
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
    <h2>Looking at what “{name}” has</h2>
    <p>
      Its streams and their fields are read. Large sources take minutes; you need not wait here, what you have chosen is
      kept.
    </p>
    {since && (
      <p className="dimmed">
        Asked <RelativeTime at={since} />
      </p>
    )}
  </div>
);

interface UndiscoveredProps {
  error: { code: string; message: string } | null;
  isBusy: boolean;
  again: () => void;
  back: () => void;
}

const Undiscovered = ({ error, isBusy, again, back }: UndiscoveredProps) => (
  <div className="empty" role="status">
    <span className="empty-icon">
      <Icon name={error ? 'alert' : 'source'} size={26} />
    </span>
    <h2>{error ? 'The streams could not be read' : 'The streams are not known yet'}</h2>
    {error && (
      <>
        <p>{error.message}</p>
        <p className="failure-codes">
          Code <code>{error.code}</code>
        </p>
        <p>Look at what the source's user may read, then try again; the parameters can be changed one step back.</p>
      </>
    )}
    <div className="row">
      <Button variant="default" onClick={back}>
        To the parameters
      </Button>
      <Button loading={isBusy} onClick={again}>
        {error ? 'Try again' : 'Look them up'}
      </Button>
    </div>
  </div>
);
