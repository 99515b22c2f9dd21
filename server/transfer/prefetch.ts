/**
 * Reads one item ahead, so that source and destination work at the same time; never more, so that memory stays
 * bounded by two batches. Ends the source when the reader leaves early.
 */
export async function* prefetch<Item>(open: () => AsyncIterable<Item>): AsyncGenerator<Item> {
  const items = open()[Symbol.asyncIterator]();
  const ask = () => {
    const next = items.next();
    // Its error is thrown when it is awaited below; until then it must not count as unhandled.
    next.catch(() => {});
    return next;
  };
  let next = ask();
  try {
    for (;;) {
      const { done, value } = await next;
      if (done) return;
      next = ask();
      yield value;
    }
  } finally {
    await next.catch(() => {});
    await items.return?.();
  }
}
