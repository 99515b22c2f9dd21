import type {
  AnyDestination,
  AnySource,
  Batch,
  ByteStream,
  Writer,
} from '../../server/connectors/contract/connector.ts';
import { RetryableError } from '../../server/connectors/contract/errors.ts';
import type { Crash } from './cases.ts';

export interface Breaking {
  crash: Crash | null;
  /** Rows of a batch, at most. */
  batch_rows: number;
  /** False: the rows are decoded even if both sides could copy them as they are. */
  bytes: boolean;
}

/** Runs `work` while the connectors break as planned, but only once, so that the next attempt succeeds. */
export async function whileBreaking(
  { source, destination }: { source: AnySource; destination: AnyDestination },
  { crash, batch_rows, bytes }: Breaking,
  work: () => Promise<void>,
): Promise<{ crashed: boolean }> {
  const fuse = new Fuse(crash);
  const { open } = destination;
  const { read, copy } = source;
  destination.open = async (ctx, target) => breakingWriter(await open.call(destination, ctx, target), fuse, bytes);
  source.read = (ctx, request) => brokenBatches(read.call(source, ctx, request), batch_rows, fuse);
  if (copy) {
    source.copy = async (ctx, request, format) => brokenBytes(await copy.call(source, ctx, request, format), fuse);
  }
  try {
    await work();
  } finally {
    Object.assign(destination, { open });
    Object.assign(source, { read, ...(copy && { copy }) });
  }
  return { crashed: fuse.blown };
}

class Fuse {
  blown = false;
  #calls = 0;

  constructor(private readonly crash: Crash | null) {}

  at(place: Crash['at'], when: Crash['when']): void {
    const { crash } = this;
    if (this.blown || crash?.at !== place || crash.when !== when) return;
    if (this.#calls++ < crash.calls % (place === 'finish' ? 1 : 4)) return;
    this.blown = true;
    throw new RetryableError('planned_crash', `The attempt breaks ${when} ${place}`);
  }
}

function breakingWriter(writer: Writer, fuse: Fuse, bytes: boolean): Writer {
  const around = async <Result>(at: Crash['at'], call: () => Promise<Result>): Promise<Result> => {
    fuse.at(at, 'before');
    const result = await call();
    fuse.at(at, 'after');
    return result;
  };
  const piped = writer.pipe && ((stream: ByteStream) => around('write', () => writer.pipe!(stream)));
  return {
    committed: writer.committed,
    held: writer.held,
    ...(bytes && piped && { byteFormats: writer.byteFormats, pipe: piped }),
    write: (batch) => around('write', () => writer.write(batch)),
    checkpoint: (state) => around('checkpoint', () => writer.checkpoint(state)),
    finish: (state) => around('finish', () => writer.finish(state)),
    abort: () => writer.abort(),
  };
}

/** The state belongs to the last part of a batch. */
async function* brokenBatches(batches: AsyncIterable<Batch>, size: number, fuse: Fuse): AsyncGenerator<Batch> {
  for await (const batch of batches) {
    const { rows, state, changes, bytes } = batch;
    for (let from = 0; from < rows.length || from === 0; from += size) {
      fuse.at('source', 'before');
      const isLast = from + size >= rows.length;
      const part = { rows: rows.slice(from, from + size), changes: changes?.slice(from, from + size) };
      yield {
        ...part,
        bytes: Math.ceil((bytes * part.rows.length) / Math.max(1, rows.length)),
        ...(isLast && state && { state }),
      };
      fuse.at('source', 'after');
    }
  }
}

/** Chunks of reads with a state contain whole rows; others may be cut anywhere. */
function brokenBytes(stream: ByteStream, fuse: Fuse): ByteStream {
  const cut = !stream.state;
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for await (const chunk of stream.chunks) {
      fuse.at('source', 'before');
      const half = cut ? Math.floor(chunk.length / 3) : 0;
      if (half > 0) yield chunk.subarray(0, half);
      fuse.at('source', 'after');
      yield chunk.subarray(half);
    }
  }
  return {
    format: stream.format,
    chunks: chunks(),
    rows: () => stream.rows(),
    ...(stream.state && { state: () => stream.state!() }),
  };
}
