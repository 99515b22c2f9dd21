import { lsnText, lsnValue } from '../connection/lsn.ts';
import type { Received } from '../connection/replication-stream.ts';
import type { PgSession } from '../connection/session.ts';
import { literal } from '../connection/sql.ts';
import { type LogMessage, PgoutputDecoder } from './pgoutput.ts';
import { copySlot } from './replication-slots.ts';
import { ReadAhead } from './read-ahead.ts';

const MB = 1024n * 1024n;

/** Of log. Longer ones are read slice by slice. */
const SLICE_BYTES = 32n * MB;

/** Messages of a slice. The server decodes all of it before the first row comes, and keeps them in a temporary file. */
const SLICE_MESSAGES = 500_000n;

/** Of log that one statement reads where there is no slot for slices. */
const MAX_PEEKED_BYTES = 128n * MB;

const FUNCTIONS = [
  'pg_logical_slot_peek_binary_changes(name, pg_lsn, int4, text[])',
  'pg_logical_slot_get_binary_changes(name, pg_lsn, int4, text[])',
  'pg_replication_slot_advance(name, pg_lsn)',
];

/** Of the field count, and of the length of the only field. */
const ROW_HEADER = 6;

export interface PeekedSlot {
  name: string;
  /** What is confirmed to the slot. */
  from: bigint;
  target: bigint;
  /** The LSN before which everything is committed at the destination; null: not known. */
  committed(): string | null;
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
  /** The beginning of a row whose rest has not arrived. */
  #begun: Buffer | null = null;

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
    const copy = length > SLICE_BYTES ? await copySlot(session, slot.name) : null;
    if (copy === null && length > MAX_PEEKED_BYTES) return null;
    // A stream of the log has no such limit either.
    await session.query('set statement_timeout = 0');
    return new PeekedLog(session, slot, copy);
  }

  private constructor(
    private readonly session: PgSession,
    private readonly slot: PeekedSlot,
    copy: string | null,
  ) {
    this.#pieces.fill(copy === null ? this.#peek() : this.#slices(copy));
  }

  readonly next = async (): Promise<Received<LogMessage>> => {
    const piece = await this.#pieces.next();
    if (piece === null) return { messages: [], position: lsnText(this.slot.target) };
    return { messages: this.#messagesOf(piece), position: null };
  };

  /** Leaves the session open for statements. */
  end(): Promise<void> {
    return this.#pieces.discard();
  }

  #peek(): AsyncIterable<Buffer> {
    return this.#changes('peek', this.slot.name, { to: this.slot.target, messages: null });
  }

  async *#slices(copy: string): AsyncGenerator<Buffer> {
    const { from, target } = this.slot;
    let confirmed = from;
    for (let slice = await this.#sliceOf(copy); slice.at < target; slice = await this.#sliceOf(copy)) {
      confirmed = await this.#confirm(confirmed);
      yield* this.#changes('get', copy, slice);
    }
  }

  /** Lets the server discard log during a long read. @returns the new position of the slot */
  async #confirm(confirmed: bigint): Promise<bigint> {
    const committed = this.slot.committed();
    if (committed === null || lsnValue(committed) <= confirmed) return confirmed;
    await this.session.query(
      `select pg_catalog.pg_replication_slot_advance(${literal(this.slot.name)}, ${literal(committed)})`,
      { slow: true },
    );
    return lsnValue(committed);
  }

  /**
   * The server decodes from where the slot restarts, which stays behind while transactions are open, and up to 15 s of
   * log in any case. Decoding log without returning it costs a fifth, so a slice grows with that: a transaction longer
   * than a slice, which only the last of its slices returns, is decoded some two times at most.
   */
  async #sliceOf(copy: string): Promise<{ at: bigint; to: bigint; messages: bigint }> {
    const { rows } = await this.session.query(
      `select confirmed_flush_lsn, (confirmed_flush_lsn - restart_lsn)::bigint from pg_replication_slots
        where slot_name = ${literal(copy)}`,
    );
    const [position, again] = rows[0]!;
    const [at, decoded] = [lsnValue(position!), BigInt(again!)];
    const to = at + larger(SLICE_BYTES, 8n * decoded);
    const { target } = this.slot;
    return { at, to: to < target ? to : target, messages: larger(SLICE_MESSAGES, decoded / 1000n) };
  }

  #changes(
    how: 'peek' | 'get',
    slot: string,
    { to, messages }: { to: bigint; messages: bigint | null },
  ): AsyncIterable<Buffer> {
    const limit = messages === null ? 'null' : `least(${messages}, 2147483647)::int4`;
    const text = `copy (select data from pg_catalog.pg_logical_slot_${how}_binary_changes(${literal(slot)},
      '${lsnText(to)}', ${limit}, 'proto_version', '1', 'publication_names', ${literal(this.slot.name)})) to stdout (format binary)`;
    return this.session.copyOut(text, { binary: true, bare: true });
  }

  #messagesOf(piece: Buffer): LogMessage[] {
    const bytes = this.#begun ? Buffer.concat([this.#begun, piece]) : piece;
    const messages: LogMessage[] = [];
    let at = 0;
    while (bytes.length - at >= ROW_HEADER) {
      const from = at + ROW_HEADER;
      const to = from + bytes.readInt32BE(at + 2);
      if (to > bytes.length) break;
      messages.push(this.#decoder.decode(bytes, from, to));
      at = to;
    }
    this.#begun = at < bytes.length ? bytes.subarray(at) : null;
    return messages;
  }
}

const larger = (one: bigint, other: bigint) => (one > other ? one : other);
