import type { ByteFormat, ByteStream, StreamState, Writer } from '../connectors/contract/connector.ts';
import type { Attempt } from './attempt.ts';
import { freeBytes } from '../platform/memory/free-bytes.ts';
import { CheckpointPace } from './pace/checkpoint-pace.ts';
import { canMapCopyBinary, CopyBinaryMapper } from './copy/binary-mapper.ts';
import { canMapCopyText, createCopyTextMapper } from './copy/text-mapper.ts';
import { fromSource, onSide } from '../connector-runtime/side-error.ts';
import { notBefore } from './lookback-window.ts';
import { commitCheckpoint, type Transfer } from './commit-checkpoint.ts';
import type { TransferPlan } from '../pipeline/transfer-plan.ts';

/** In which the stream can be moved as bytes. Null: the rows must be decoded. */
export function byteFormat({ plan, source, writer, request }: Transfer): ByteFormat | null {
  return source.copy ? sharedFormat(plan, source.byteFormats?.(request) ?? [], writer) : null;
}

/** Whether the engine can apply a plan to the bytes. */
const MAPPABLE: Record<ByteFormat, (plan: TransferPlan) => boolean> = {
  'pgcopy-binary': canMapCopyBinary,
  'pgcopy-text': canMapCopyText,
};

/** The first offered format that the writer takes and in which the engine can still apply the plan. */
export function sharedFormat(plan: TransferPlan, offered: readonly ByteFormat[], writer: Writer): ByteFormat | null {
  if (!writer.pipe) return null;
  const accepted = writer.byteFormats ?? [];
  const shared = offered.filter((format) => accepted.includes(format));
  if (plan.untouched) return shared[0] ?? null;
  return shared.find((format) => MAPPABLE[format](plan)) ?? null;
}

/**
 * Moves the stream as encoded bytes: one pipe per checkpoint, or a single pipe when the stream has no state. Resolves to
 * the state at the end.
 */
export async function moveBytes(input: Transfer, wanted: ByteFormat): Promise<StreamState | null> {
  const { attempt, source, sourceContext, writer, request } = input;
  const { claim, deps } = attempt;
  const stream = await onSide('source', () => source.copy!(sourceContext, request, wanted));
  const { format } = stream;
  const mapped = byteMapper(attempt, input.plan, stream);
  const overlaps = writer.writes_while_committing === true;
  const pace = new CheckpointPace(claim.stream.destination_sync_mode, deps.config.CHECKPOINT_KB * 1024, overlaps);
  let committing: Promise<void> = Promise.resolve();
  const chunks = fromSource(counted(attempt, stream))[Symbol.asyncIterator]();
  let ended = false;
  async function* upToCheckpoint() {
    for (let due = false; !due; ) {
      const { done, value } = await chunks.next();
      ended = done === true;
      if (done) return;
      yield mapped.map(value);
      due = pace.due(value.length) && !input.at_once && stream.state?.() != null;
    }
  }
  const state = () => {
    const reached = stream.state?.() ?? request.state;
    return stream.state && reached && notBefore(reached, input.floor);
  };
  try {
    for (let begun = 0; !ended; begun = stream.rows()) {
      const { rowsEnd, reuse } = mapped;
      const part = { format, rows: () => stream.rows() - begun, rowsEnd, reuse, computed: stream.computed };
      await takingAll(upToCheckpoint(), (taken) =>
        onSide('destination', () => writer.pipe!({ ...part, chunks: taken })),
      );
      attempt.signal.throwIfAborted();
      const reached = state();
      await committing;
      if (!ended && reached) {
        committing = commitCheckpoint(input, reached);
        // Awaited before the next commit.
        committing.catch(() => {});
        if (!overlaps) await committing;
      }
      pace.reset();
    }
  } finally {
    await chunks.return?.(undefined);
    // Whatever ended the read, its rows are in place.
    await committing.catch(() => {});
  }
  return state() ?? null;
}

/** Hands chunks to `taker`, which may wrap an error that reading them has thrown: rejects with that error itself. */
export async function takingAll(
  chunks: AsyncIterable<Uint8Array>,
  taker: (chunks: AsyncGenerator<Uint8Array>) => Promise<void>,
): Promise<void> {
  let failure: { error: unknown } | null = null;
  async function* watched() {
    try {
      yield* chunks;
    } catch (error) {
      failure = { error };
      throw error;
    }
  }
  await taker(watched()).catch((error: unknown) => {
    throw failure ? failure.error : error;
  });
}

/** Counts the rows of the stream while they are read. */
export async function* counted(attempt: Attempt, stream: ByteStream): AsyncGenerator<Uint8Array> {
  let rows = 0;
  for await (const chunk of stream.chunks) {
    const sofar = stream.rows();
    attempt.recordRead(sofar - rows, chunk.length);
    rows = sofar;
    yield chunk;
  }
  attempt.recordRead(stream.rows() - rows, 0);
}

/** A stream to which a plan is applied: takes its chunks, and describes the resulting ones as the stream does its own. */
interface MappedBytes extends Pick<ByteStream, 'reuse'> {
  map(chunk: Uint8Array): Uint8Array;
  rowsEnd(): number;
}

/** Applies the plan to encoded rows. */
export function byteMapper(attempt: Attempt, plan: TransferPlan, stream: ByteStream): MappedBytes {
  const { format } = stream;
  const reuse = stream.reuse?.bind(stream);
  if (plan.untouched) return { map: (chunk) => chunk, rowsEnd: () => stream.rowsEnd?.() ?? 0, reuse };
  const keys = attempt.deps.secrets.maskKeys(attempt.claim.run.account_id);
  const mapper = format === 'pgcopy-binary' ? new CopyBinaryMapper(plan, keys) : createCopyTextMapper(plan, keys);
  let end = 0;
  const map = (chunk: Uint8Array) => {
    const rows = mapper.map(chunk);
    end = rows.length;
    reuse?.(chunk);
    return rows;
  };
  // A mapper returns whole rows.
  return { map, rowsEnd: () => end, reuse: freeBytes };
}
