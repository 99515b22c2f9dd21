import { type QueryKey, type UseMutationOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import type { DecorateMutationProcedure, inferInput, inferOutput } from '@trpc/tanstack-react-query';
import type { ApiError } from '../api.ts';
import { notify, notifyFailure } from './components/notices.tsx';

// oxlint-disable-next-line typescript/no-explicit-any -- any procedure; its types are inferred where it is used
type Mutation = DecorateMutationProcedure<any>;

interface ActionOptions<M extends Mutation> {
  /** Title of the success notice. Without it, success is silent. */
  done?: string;
  /** Title of the failure notice; null where the form shows `error` itself. */
  failed?: string | null;
  /** Queries to refetch after success. Without it, all of them. */
  refresh?: readonly { pathKey(): QueryKey }[];
  /** Runs after success, before the queries are refetched. */
  after?: (output: inferOutput<M>, input: inferInput<M>) => unknown;
}

/** A mutation behind a button or form: notifies of the result and refetches the queries it affects. */
export function useAction<M extends Mutation>(
  procedure: M,
  { done, failed = 'Something went wrong', refresh, after }: ActionOptions<M> = {},
) {
  const queryClient = useQueryClient();
  // The client throws nothing but ApiError (see typedErrors), which tRPC's own types cannot express.
  const options = procedure.mutationOptions() as UseMutationOptions<inferOutput<M>, ApiError, inferInput<M>>;
  return useMutation({
    ...options,
    onSuccess: async (output, input) => {
      if (done) notify(done);
      await after?.(output, input);
      if (refresh)
        await Promise.all(refresh.map((query) => queryClient.invalidateQueries({ queryKey: query.pathKey() })));
      else await queryClient.invalidateQueries();
    },
    onError: (error) => {
      if (failed !== null && error.status !== 401) notifyFailure(failed, error);
    },
  });
}
