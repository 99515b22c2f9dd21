import type { ConnectorContext } from '../../contract/connector.ts';

type Signalled = Pick<ConnectorContext<unknown>, 'signal'>;

/** A context whose signal also ends with the work: requests that are still open are aborted then. */
function endingContext<Context extends Signalled>(ctx: Context): { ctx: Context; end: () => void } {
  const abort = new AbortController();
  return {
    ctx: { ...ctx, signal: AbortSignal.any([ctx.signal, abort.signal]) },
    end: () => abort.abort(),
  };
}

/** Runs work, and aborts its open requests when it is done. */
export async function withRequests<Context extends Signalled, Result>(
  given: Context,
  work: (ctx: Context) => Promise<Result>,
): Promise<Result> {
  const { ctx, end } = endingContext(given);
  try {
    return await work(ctx);
  } finally {
    end();
  }
}

/** The same for a read: a consumer that leaves early aborts the pages that are still being fetched. */
export async function* readWithRequests<Context extends Signalled, Item>(
  given: Context,
  read: (ctx: Context) => AsyncGenerator<Item>,
): AsyncGenerator<Item> {
  given.signal.throwIfAborted();
  const { ctx, end } = endingContext(given);
  try {
    yield* read(ctx);
  } finally {
    end();
  }
}
