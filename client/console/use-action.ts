import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type Input, type Name, order, type Output } from './api.ts';
import { notify, notifyFailure } from './components/notices.tsx';

interface Telling<N extends Name> {
  /** The notice of success; none when it is left out. */
  done?: string;
  /** The notice of a failure; null where the form itself shows `error`. */
  failed?: string | null;
  /** Reads that are asked anew, by name; everything when it is left out. */
  refresh?: readonly Name[];
  /** Done before the reads are asked anew. */
  after?: (output: Output<N>, input: Input<N>) => unknown;
}

/** A change from a button or form: tells how it went, and lets the pages ask anew for what it touched. */
export function useOrder<N extends Name>(
  name: N,
  { done, failed = 'That did not work', refresh, after }: Telling<N> = {},
) {
  const queries = useQueryClient();
  return useMutation({
    ...order(name),
    onSuccess: async (output, input) => {
      if (done) notify(done);
      await after?.(output, input);
      await queries.invalidateQueries(
        refresh && { predicate: ({ queryKey: [asked] }) => refresh.some((one) => one === asked) },
      );
    },
    onError: (error) => {
      if (failed !== null && error.status !== 401) notifyFailure(failed, error);
    },
  });
}
