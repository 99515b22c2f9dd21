import { type QueryKey, type UseMutationOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import type { DecorateMutationProcedure, inferInput, inferOutput } from '@trpc/tanstack-react-query';
import type { ApiError } from '../api.ts';
import { notify, notifyFailure, notifyProblem } from './components/notices.tsx';

// oxlint-disable-next-line typescript/no-explicit-any -- any procedure; its types are inferred where it is used
type Mutation = DecorateMutationProcedure<any>;

/** How long an action waits for the data that it has changed. */
const REFETCH_MS = 3_000;

interface ActionOptions<M extends Mutation> {
  /** Title of the success notice. Without it, success is silent. */
  done?: string | ((output: inferOutput<M>, input: inferInput<M>) => string);
  /** Title of the failure notice; null where the form shows `error` itself. */
  failed?: string | null;
  /** Queries to refetch after success. Without it, all of them. */
  refresh?: readonly { pathKey(): QueryKey }[];
  /** Runs after success, before the queries are refetched. */
  after?: (output: inferOutput<M>, input: inferInput<M>) => unknown;
  /** Offers "Undo" with the success notice. */
  undo?: Undo<M>;
}

/** How one more call of the procedure restores exactly what an action changed. */
interface Undo<M extends Mutation> {
  /**
   * The input that restores what `input` is about to change; null if none does, or nothing changes. Called before the
   * action, and reads the item, because others may have changed it since the page did. With its `revision`, a later
   * change by others is not undone.
   */
  input: (input: inferInput<M>) => inferInput<M> | null | Promise<inferInput<M> | null>;
  /** Whether the item is still as the action left it. Needed where it has no revision. */
  isCurrent?: (output: inferOutput<M>, input: inferInput<M>) => Promise<boolean>;
}

/** A mutation behind a button or form: notifies of the result and refetches the queries it affects. */
export function useAction<M extends Mutation>(
  procedure: M,
  { done, failed = 'Something went wrong', refresh, after, undo }: ActionOptions<M> = {},
) {
  type Output = inferOutput<M>;
  type Input = inferInput<M>;
  const queryClient = useQueryClient();
  // The client throws nothing but ApiError (see typedErrors), which tRPC's own types cannot express.
  const options = procedure.mutationOptions() as UseMutationOptions<Output, ApiError, Input, Input | null>;
  const refetch = async () => {
    if (refresh)
      await Promise.all(refresh.map((query) => queryClient.invalidateQueries({ queryKey: query.pathKey() })));
    else await queryClient.invalidateQueries();
  };
  const revert = async (title: string, { output, input, before }: { output: Output; input: Input; before: Input }) => {
    try {
      if ((await undo?.isCurrent?.(output, input)) === false) {
        notifyProblem('Not undone', 'It has been changed since');
      } else {
        // The component of the action may be gone by now, so this one belongs to none.
        const restoring = queryClient.getMutationCache().build(queryClient, options);
        await restoring.execute({ ...before, ...(revisionOf(output) !== null && { revision: revisionOf(output) }) });
        notify(`Undone: ${title}`);
      }
    } catch (error) {
      notifyFailure('Not undone', error);
    }
    await refetch();
  };
  return useMutation({
    ...options,
    onMutate: (input) => undo?.input(input) ?? null,
    onSuccess: async (output, input, before) => {
      if (done !== undefined) {
        const title = typeof done === 'string' ? done : done(output, input);
        const canUndo = before !== null && isNext(output, before);
        notify(title, canUndo ? { undo: () => void revert(title, { output, input, before }) } : {});
      }
      await after?.(output, input);
      // The action is done: a read without an answer must not keep its form disabled.
      await Promise.race([refetch(), new Promise((resolve) => setTimeout(resolve, REFETCH_MS))]);
    },
    onError: (error) => {
      if (failed !== null && error.status !== 401) notifyFailure(failed, error);
    },
  });
}

const revisionOf = (value: unknown): number | null =>
  typeof value === 'object' && value !== null && 'revision' in value && typeof value.revision === 'number'
    ? value.revision
    : null;

/** Whether the action changed the item, and nothing else did. */
function isNext(output: unknown, shown: unknown): boolean {
  const before = revisionOf(shown);
  return before === null || revisionOf(output) === before + 1;
}
