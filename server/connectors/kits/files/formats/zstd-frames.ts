const FRAME = 0xfd2fb528;
/** Frames that decompressors skip begin with this number or one of the 15 after it. */
const SKIPPABLE = 0x184d2a50;
const DICTIONARY_BYTES = [0, 1, 2, 4];
const SIZE_BYTES = [0, 2, 4, 8];
const RUN_BLOCK = 1;

/** Whether compressed bytes end where a zstd frame ends. RFC 8878, sections 3.1.1 and 3.1.2. */
export class ZstdFrames {
  readonly #walk = frames();
  #step = this.#walk.next().value;
  #held: number[] = [];
  #begun = false;

  add(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      const { skip, need } = this.#step;
      if (skip > 0) {
        const skipped = Math.min(skip, chunk.length - at);
        at += skipped;
        this.#step = { ...this.#step, skip: skip - skipped };
        continue;
      }
      this.#begun = true;
      this.#held.push(chunk[at++] as number);
      if (this.#held.length < need) continue;
      const bytes = Buffer.from(this.#held);
      this.#held = [];
      this.#step = this.#walk.next(bytes).value;
    }
  }

  /** False after garbage, too: what is no frame has no end. */
  get whole(): boolean {
    const { between, skip } = this.#step;
    return this.#begun && between && skip === 0 && this.#held.length === 0;
  }
}

/** Leaves out `skip` bytes, and needs the `need` bytes after them. `between`: a frame has ended before them. */
interface Step {
  skip: number;
  need: number;
  between: boolean;
}

function* frames(): Generator<Step, never, Buffer> {
  let skip = 0;
  while (true) {
    const magic = (yield* after(skip, 4, true)).readUInt32LE();
    if (magic === FRAME) skip = yield* frame();
    else if (magic >>> 4 === SKIPPABLE >>> 4) skip = (yield* after(0, 4)).readUInt32LE();
    else yield* after(Number.POSITIVE_INFINITY, 1);
  }
}

function* after(skip: number, need: number, between = false): Generator<Step, Buffer, Buffer> {
  return yield { skip, need, between };
}

/** @returns the number of bytes of the frame that remain: its checksum */
function* frame(): Generator<Step, number, Buffer> {
  const [descriptor = 0] = yield* after(0, 1);
  const single = (descriptor >> 5) & 1;
  const sizeBytes = SIZE_BYTES[descriptor >> 6] || single;
  let skip = 1 - single + (DICTIONARY_BYTES[descriptor & 3] as number) + sizeBytes;
  while (true) {
    const header = (yield* after(skip, 3)).readUIntLE(0, 3);
    skip = ((header >> 1) & 3) === RUN_BLOCK ? 1 : header >> 3;
    if (header & 1) return skip + ((descriptor >> 2) & 1) * 4;
  }
}
