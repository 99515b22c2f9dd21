/** Wraps an error to record which side of the transfer it came from. */
export class SideError extends Error {
  constructor(
    readonly origin: 'source' | 'destination',
    override readonly cause: unknown,
  ) {
    super(`The ${origin} failed`);
  }
}

/** Runs `work`; its errors become SideErrors of `origin`. */
export async function onSide<Result>(origin: 'source' | 'destination', work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof SideError ? error : new SideError(origin, error);
  }
}

/** Iterates a source's items; its errors become SideErrors of the source. */
export async function* fromSource<Item>(items: AsyncIterable<Item>): AsyncGenerator<Item> {
  try {
    yield* items;
  } catch (error) {
    throw new SideError('source', error);
  }
}
