/** Marks which side an error came from, as it passes by. */
export class SideError extends Error {
  constructor(
    readonly origin: 'source' | 'destination',
    override readonly cause: unknown,
  ) {
    super('one side of the transfer failed');
  }
}

/** Runs `work` and remembers which side it belongs to, should it fail. */
export async function onSide<Result>(origin: 'source' | 'destination', work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof SideError ? error : new SideError(origin, error);
  }
}

/** The same for what a source yields while it is read. */
export async function* fromSource<Item>(items: AsyncIterable<Item>): AsyncGenerator<Item> {
  try {
    yield* items;
  } catch (error) {
    throw new SideError('source', error);
  }
}
