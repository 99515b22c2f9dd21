/** Chunks differ a little in size: the memory of one of this size or more has room for another. */
const LARGE = 256 << 10;
/** More are free only while several connections take chunks at the same time. */
const MAX_FREE = 4;

/**
 * Memory for the chunks of a stream that is used again once a chunk was sent. Chunks that are only dropped are freed by a
 * collection, long after the process has taken memory for the next ones.
 */
export class ChunkPool {
  readonly #free: ArrayBuffer[] = [];
  readonly #lent = new WeakSet<ArrayBufferLike>();

  /** The content is undefined. */
  take(length: number): Uint8Array<ArrayBuffer> {
    const at = this.#free.findIndex(({ byteLength }) => byteLength >= length);
    const [memory = new ArrayBuffer(length < LARGE ? length : length + (length >> 4))] =
      at < 0 ? [] : this.#free.splice(at, 1);
    this.#lent.add(memory);
    return new Uint8Array(memory, 0, length);
  }

  copyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    const copy = this.take(bytes.length);
    copy.set(bytes);
    return copy;
  }

  /** Takes back a chunk that nothing reads any more. */
  give({ buffer }: Uint8Array): void {
    if (!this.#lent.delete(buffer)) return;
    this.#free.push(buffer as ArrayBuffer);
    if (this.#free.length > MAX_FREE) this.#free.shift();
  }
}
