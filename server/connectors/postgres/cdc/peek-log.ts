import { lsnText } from '../connection/lsn.ts';
import type { Received } from '../connection/replication-stream.ts';
import type { PgSession } from '../connection/session.ts';
import { literal } from '../connection/sql.ts';
import { type LogMessage, PgoutputDecoder } from './pgoutput.ts';

/**
 * Of log that one statement returns, at most. The server decodes all of it before the first row comes, and keeps the
 * changes in a temporary file meanwhile.
 */
const MAX_PEEKED_BYTES = 128n * 1024n * 1024n;

/** Of the field count, and of the length of the only field. */
const ROW_HEADER = 6;

/**
 * Whether the changes from `from` to `target` are read by a statement. A stream sends each message of the log on its own,
 * begin and commit of each transaction included, which costs the server twice as much as decoding them; the rows of
 * a statement leave together.
 */
export async function canPeek(
  session: PgSession,
  { from, target }: { from: bigint; target: bigint },
): Promise<boolean> {
  if (target - from > MAX_PEEKED_BYTES) return false;
  const { rows } = await session.query(
    `select current_setting('temp_file_limit') = '-1' and has_function_privilege(
       'pg_catalog.pg_logical_slot_peek_binary_changes(name, pg_lsn, int4, text[])', 'execute')`,
  );
  return rows[0]?.[0] === 't';
}

/** The messages of a slot from its confirmed position up to `target`. The slot stays as it is. */
export class PeekedLog {
  readonly #decoder = new PgoutputDecoder(true);
  readonly #pieces: AsyncGenerator<Buffer>;
  /** The beginning of a row whose rest has not arrived. */
  #begun: Buffer | null = null;

  /** @param session one that has not looked at the tables: older rows are decoded by what it knows of them */
  static async open(session: PgSession, of: { name: string; target: bigint }): Promise<PeekedLog> {
    // A stream of the log has no such limit either.
    await session.query('set statement_timeout = 0');
    return new PeekedLog(session, of);
  }

  private constructor(
    session: PgSession,
    private readonly of: { name: string; target: bigint },
  ) {
    const name = literal(of.name);
    const text = `copy (select data from pg_catalog.pg_logical_slot_peek_binary_changes(
      ${name}, '${lsnText(of.target)}', null, 'proto_version', '1', 'publication_names', ${name})) to stdout (format binary)`;
    const copy = session.copyOut(text, { binary: true, bare: true });
    this.#pieces = copy[Symbol.asyncIterator]();
  }

  readonly next = async (): Promise<Received<LogMessage>> => {
    const { done, value } = await this.#pieces.next();
    if (done) return { messages: [], position: lsnText(this.of.target) };
    return { messages: this.#messagesOf(value), position: null };
  };

  /** Leaves the session open for statements. */
  async end(): Promise<void> {
    while (!(await this.#pieces.next()).done) continue;
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
