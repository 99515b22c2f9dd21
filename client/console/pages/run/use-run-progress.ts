import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, ask, type Output } from '../../api.ts';
import { lost } from '../../service-reachability.ts';

export interface RunProgress {
  run: Output<'runs.list'>[number];
  stream_runs: Output<'runs.streamRuns'>;
}

const LIVE = new Set(['queued', 'running', 'retrying', 'stopping']);
export const isLive = (status: string): boolean => LIVE.has(status);

/** Runs are listed, not had one by one: the newest hundred first, then all. */
const NEWEST = 100;
const POLL_MS = 1_000;

/**
 * A run as it goes on, at most a second behind: told by the service, and asked each second while nobody tells: the
 * stream broke and is made anew, or a proxy keeps it back. null: there is no such run.
 */
export function useRunProgress(key: { connection_id: string; connection_run_id: string }) {
  const { connection_id, connection_run_id } = key;
  const queries = useQueryClient();
  const isLost = lost.use();
  const [isTold, setTold] = useState(false);
  const subject = ['run-progress', connection_id, connection_run_id];
  const progress = useQuery({
    queryKey: subject,
    queryFn: ({ signal }): Promise<RunProgress | null> => readOnce(key, signal),
    refetchInterval: ({ state }) => (!isTold && state.data && isLive(state.data.run.status) ? POLL_MS : false),
  });
  const shouldListen = progress.data ? isLive(progress.data.run.status) : false;
  useEffect(() => {
    if (!shouldListen || isLost) return undefined;
    const subscription = api.runs.progress.subscribe(
      { connection_id, connection_run_id },
      {
        onData: (told) => {
          setTold(true);
          queries.setQueryData(subject, told);
        },
        onConnectionStateChange: ({ state }) => state === 'connecting' && setTold(false),
        onError: () => setTold(false),
        onComplete: () => void queries.invalidateQueries({ queryKey: ['connections.get'] }),
      },
    );
    return () => subscription.unsubscribe();
    // The subject is made of the ids.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [shouldListen, isLost, connection_id, connection_run_id, queries]);
  return progress;
}

async function readOnce(key: { connection_id: string; connection_run_id: string }, signal: AbortSignal) {
  const { connection_id, connection_run_id } = key;
  const of = async (limit?: number) =>
    (await api.runs.list.query({ connection_id, limit }, { signal })).find(({ id }) => id === connection_run_id);
  const [newest, stream_runs] = await Promise.all([of(NEWEST), api.runs.streamRuns.query(key, { signal })]);
  const run = newest ?? (await of());
  return run ? { run, stream_runs } : null;
}

/** The other reads of the page, named here so that both go by the same key. */
export const connectionOf = (connection_id: string) => ask('connections.get', { connection_id });
