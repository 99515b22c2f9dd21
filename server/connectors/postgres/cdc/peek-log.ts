import { freeBytes } from '../../../platform/memory/free-bytes.ts';
import { SplitMessage } from '../../kits/sql/split-message.ts';
import { lsnText, lsnValue } from '../connection/lsn.ts';
import type { Received } from '../connection/replication-stream.ts';
import type { PgSession } from '../connection/session.ts';
import { literal } from '../connection/sql.ts';
import { type LogMessage, PgoutputDecoder } from './pgoutput.ts';
import { copySlot } from './replication-slots.ts';
import { ReadAhead } from './read-ahead.ts';

const MB = 1024n * 1024n;

/** Of log. Longer ones are read slice by slice. */
const SLICED_BYTES = 8n * MB;

/**
 * Messages of the first slice. The server decodes all of a slice before its first row comes, so the destination would be
 * idle during a large one; each of the next ones has twice as many.
 */
const FIRST_MESSAGES = 16_000n;

/** Messages of a slice, which the server keeps in a temporary file. */
const MAX_MESSAGES = 500_000n;

/** Of log, in which there may be few messages. */
const SLICE_BYTES = 512n * MB;

/** Of log that one statement reads where there is no slot for slices. */
const MAX_PEEKED_BYTES = 128n * MB;

const FUNCTIONS = [
  'pg_logical_slot_peek_binary_changes(name, pg_lsn, int4, text[])',
  'pg_logical_slot_get_binary_changes(name, pg_lsn, int4, text[])',
  'pg_replication_slot_advance(name, pg_lsn)',
];

/**
 * Of log that is committed, after which a long read confirms it. The server reads the log once more for that, from where the slot
 * restarts: 1.5 ms a MB, in which nothing is decoded for the destination.
 */
const CONFIRMED_BYTES = 256n * MB;

/** A read that follows the log goes on by statements only while more than this is left. */
const FOLLOWED_BYTES = 16n * MB;

/** Of the field count, and of the length of the only field. */
const ROW_HEADER = 6;

export interface PeekedSlot {
  name: string;
  /** What is confirmed to the slot. */
  from: bigint;
  target: bigint;
  /** The LSN before which everything is committed at the destination; null: not known. */
  committed(): string | null;
  /** Set: the log is read on after the target. `messages`: those of `pg_logical_emit_message` as well. */
  follows: { messages: boolean } | null;
}

/**
 * The messages of a slot from its confirmed position up to `target`, by statements. A stream sends each message of the
 * log on its own, begin and commit of each transaction included, which costs the server twice as much as decoding them;
 * the rows of a statement leave together.
 *
 * Log that is longer than a slice is read through a temporary copy of the slot: it moves on with each statement, while
 * the slot itself stays at what is committed at the destination. The next statement is decoded while the rows of the
 * last one are applied. A transaction is part of the slice in which it ends.
 */
export class PeekedLog {
  readonly #decoder = new PgoutputDecoder(true);
  readonly #pieces = new ReadAhead();
  readonly #split = new SplitMessage({ header: ROW_HEADER, endOf });
  /** What `next` has returned last is a part of these bytes. */
  #given: Buffer | null = null;
  #target: bigint;
  /** To the slot. */
  #confirmed: bigint;
  #messages = FIRST_MESSAGES;

  /**
   * @param session one that has not looked at the tables: older rows are decoded by what it knows of them
   * @returns null: the log can only be read as a stream
   */
  static async open(session: PgSession, slot: PeekedSlot): Promise<PeekedLog | null> {
    const { rows } = await session.query(
      `select current_setting('temp_file_limit') = '-1'
          and bool_and(coalesce(has_function_privilege(to_regprocedure('pg_catalog.' || name), 'execute'), false))
         from unnest(array[${FUNCTIONS.map(literal).join(', ')}]) as name`,
    );
    if (rows[0]?.[0] !== 't') return null;
    const length = slot.target - slot.from;
    if (slot.follows && length <= FOLLOWED_BYTES) return null;
    const copy = slot.follows || length > SLICED_BYTES ? await copySlot(session, slot.name) : null;
    if (copy === null && (slot.follows || length > MAX_PEEKED_BYTES)) return null;
    // A stream of the log has no such limit either.
    await session.query('set statement_timeout = 0');
    return new PeekedLog(session, slot, copy);
  }

  private constructor(
    private readonly session: PgSession,
    private readonly slot: PeekedSlot,
    copy: string | null,
  ) {
    [this.#target, this.#confirmed] = [slot.target, slot.from];
    this.#pieces.fill(copy === null ? this.#peek() : this.#slices(copy));
  }

  /** Changes are gone with the next call. */
  readonly next = async (until?: AbortSignal): Promise<Received<LogMessage>> => {
    if (this.#given) freeBytes(this.#given);
    this.#given = null;
    const piece = await this.#pieces.next(until);
    if (piece) return { messages: this.#messagesOf(piece), position: null };
    return { messages: [], position: this.#pieces.isAtEnd ? lsnText(this.#target) : null };
  };

  /** Leaves the session open for statements. */
  end(): Promise<void> {
    return this.#pieces.discard();
  }

  #peek(): AsyncIterable<Buffer> {
    return this.#changes('peek', this.slot.name, { to: this.slot.target, messages: null });
  }

  async *#slices(copy: string): AsyncGenerator<Buffer> {
    for (let slice = await this.#sliceOf(copy); slice.at < this.#target; slice = await this.#sliceOf(copy)) {
      if (this.#committed - this.#confirmed >= CONFIRMED_BYTES) await this.confirm();
      yield* this.#changes('get', copy, slice);
    }
  }

  /** Lets the server discard log. @returns the position of the slot */
  async confirm(): Promise<bigint> {
    const committed = this.#committed;
    if (committed <= this.#confirmed) return this.#confirmed;
    await this.session.query(
      `select pg_catalog.pg_replication_slot_advance(${literal(this.slot.name)}, '${lsnText(committed)}')`,
      { slow: true },
    );
    this.#confirmed = committed;
    return this.#confirmed;
  }

  get #committed(): bigint {
    const committed = this.slot.committed();
    return committed === null ? this.#confirmed : lsnValue(committed);
  }

  /**
   * The server decodes from where the slot restarts, which stays behind while transactions are open, and up to 15 s of
   * log in any case. Decoding log without returning it costs a fifth, so a slice grows with that: a transaction longer
   * than a slice, which only the last of its slices returns, is decoded some two times at most.
   */
  async #sliceOf(copy: string): Promise<{ at: bigint; to: bigint; messages: bigint }> {
    const { rows } = await this.session.query(
      `select confirmed_flush_lsn, (confirmed_flush_lsn - restart_lsn)::bigint, pg_current_wal_flush_lsn()
         from pg_replication_slots where slot_name = ${literal(copy)}`,
    );
    const [position, again, flushed] = rows[0]!;
    const [at, decoded, end] = [lsnValue(position!), BigInt(again!), lsnValue(flushed!)];
    if (this.slot.follows && end - at > FOLLOWED_BYTES) this.#target = end;
    const target = this.#target;
    const to = at + larger(SLICE_BYTES, 8n * decoded);
    const messages = larger(this.#messages, decoded / 1000n);
    this.#messages = smaller(2n * this.#messages, MAX_MESSAGES);
    return { at, to: smaller(to, target), messages };
  }

  #changes(
    how: 'peek' | 'get',
    slot: string,
    { to, messages }: { to: bigint; messages: bigint | null },
  ): AsyncIterable<Buffer> {
    const limit = messages === null ? 'null' : `least(${messages}, 2147483647)::int4`;
    const text = `copy (select data from pg_catalog.pg_logical_slot_${how}_binary_changes(${literal(slot)},
      '${lsnText(to)}', ${limit}, 'proto_version', '1', 'publication_names', ${literal(this.slot.name)}${this.slot.follows?.messages ? ", 'messages', 'true'" : ''})) to stdout (format binary)`;
    return this.session.copyOut(text, { binary: true, bare: true });
  }

  #messagesOf(piece: Buffer): LogMessage[] {
    const messages: LogMessage[] = [];
    const { message: row, next } = this.#split.resume(piece);
    if (row) messages.push(this.#decoder.decode(row, ROW_HEADER, row.length));
    let at = next;
    while (piece.length - at >= ROW_HEADER) {
      const to = endOf(piece, at);
      if (to > piece.length) break;
      messages.push(this.#decoder.decode(piece, at + ROW_HEADER, to));
      at = to;
    }
    if (at < piece.length) this.#split.begin(piece.subarray(at));
    this.#given = piece;
    return messages;
  }
}

/** Of the row at `at`. */
const endOf = (bytes: Buffer, at: number) => at + ROW_HEADER + bytes.readInt32BE(at + 2);
const larger = (one: bigint, other: bigint) => (one > other ? one : other);
const smaller = (one: bigint, other: bigint) => (one < other ? one : other);
