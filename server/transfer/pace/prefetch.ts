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
  try {
    for (;;) {
      const { done, value } = await next;
      if (done) return;
      next = request();
      yield value;
    }
  } finally {
    await next.catch(() => {});
    await items.return?.();
  }
}
