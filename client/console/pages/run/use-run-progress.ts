import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useSubscription } from '@trpc/tanstack-react-query';
import { useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { serviceUnreachable } from '../../service-reachability.ts';

export type RunProgress = RouterOutputs['runs']['get'];

const LIVE = new Set(['queued', 'running', 'retrying', 'stopping']);
export const isLive = (status: string): boolean => LIVE.has(status);

const POLL_MS = 1_000;

/**
 * A run and its streams, at most a second old: pushed by the service, and polled while nothing is pushed, because the
 * stream broke or a proxy buffers it.
 */
export function useRunProgress(key: { connection_id: string; connection_run_id: string }) {
  const queryClient = useQueryClient();
  const isUnreachable = serviceUnreachable.use();
  const [isPushed, setPushed] = useState(false);
  const query = trpc.runs.get.queryOptions({ connection_run_id: key.connection_run_id });
  const progress = useQuery({
    ...query,
    refetchInterval: ({ state }) => (!isPushed && state.data && isLive(state.data.run.status) ? POLL_MS : false),
  });
  useSubscription(
    trpc.runs.progress.subscriptionOptions(key, {
      enabled: progress.data !== undefined && isLive(progress.data.run.status) && !isUnreachable,
      onData: (data) => {
        setPushed(true);
        queryClient.setQueryData(query.queryKey, data);
        if (!isLive(data.run.status)) void queryClient.invalidateQueries(trpc.connections.get.pathFilter());
      },
      onConnectionStateChange: ({ state }) => state === 'connecting' && setPushed(false),
      onError: () => setPushed(false),
    }),
  );
  return progress;
}
