/**
 * A source that never waits, such as demo data, and a destination that takes its rows as fast would leave the event loop
 * no turn: no heartbeat, no stop, and after ten seconds the worker is taken for hung.
 */
const TURN_EVERY_MS = 50;

/**
 * Reads one item ahead, so that source and destination work at the same time while memory stays bounded by two batches.
 * Closes the source when the consumer stops early.
 */
export async function* prefetch<Item>(open: () => AsyncIterable<Item>): AsyncGenerator<Item> {
  const items = open()[Symbol.asyncIterator]();
  const request = () => {
    const next = items.next();
    // The error is thrown when `next` is awaited below; until then it must not count as unhandled.
    next.catch(() => {});
    return next;
  };
  let next = request();
  let turned = performance.now();
  try {
    for (;;) {
      const { done, value } = await next;
      if (done) return;
      if (performance.now() - turned > TURN_EVERY_MS) {
        await new Promise<void>((resolve) => setImmediate(resolve));
        turned = performance.now();
      }
      next = request();
      yield value;
    }
  } finally {
    await next.catch(() => {});
    await items.return?.();
  }
}
