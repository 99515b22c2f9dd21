import type { ConnectorContext } from '../../contract/connector.ts';
import { lsnText } from '../connection/lsn.ts';
import type { Received, ReplicationStream } from '../connection/replication-stream.ts';
import type { PgSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { PeekedLog, type PeekedSlot } from './peek-log.ts';
import type { LogMessage } from './pgoutput.ts';
import { openLogSession, startReplication } from './read-log.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

/**
 * The messages of a slot: by statements while much of its log is left, and then as a stream if the read follows the log.
 * A stream sends what is committed from now on at once, and statements read what is there in half the time.
 */
export class SlotReader {
  #stream: ReplicationStream<LogMessage> | null = null;

  /**
   * @param session opened for replication, and without a look at the tables
   * @param from the position of the first message that is needed
   */
  static async open(ctx: Context, session: PgSession, { slot, from }: { slot: PeekedSlot; from: string }) {
    const peeked = await PeekedLog.open(session, slot);
    const reader = new SlotReader(ctx, session, slot, peeked);
    // The slot stays where it is at first: streams that are not read now may need what is before `from`.
    if (!peeked) reader.#startStream(from, lsnText(slot.from));
    return reader;
  }

  private constructor(
    private readonly ctx: Context,
    private session: PgSession,
    private readonly slot: PeekedSlot,
    private peeked: PeekedLog | null,
  ) {}

  /** Much of the log is left. */
  get isBehind(): boolean {
    return this.peeked !== null;
  }

  /** What the server has sent, after it was shown what is committed. */
  readonly next = async (until?: AbortSignal): Promise<Received<LogMessage>> => {
    if (!this.peeked) {
      const committed = this.slot.committed();
      if (committed !== null) this.#stream!.confirm(committed);
      return this.#stream!.next(until);
    }
    const received = await this.peeked.next(until);
    if (this.slot.follows && received.position !== null) await this.#goOver(this.peeked, received.position);
    return received;
  };

  /** After the last message that is needed: the slot is free, and the session can be used for statements. */
  async end(): Promise<void> {
    // What a read that follows the log leaves may be much: closing the session ends the statement.
    if (this.#stream) await this.#stream.end();
    else if (!this.slot.follows) await this.peeked!.end();
  }

  close(): Promise<void> {
    return this.session.close();
  }

  translate(error: unknown): unknown {
    return this.session.translate(error);
  }

  /** Statements return each transaction whose commit begins before the position, and a stream from there all others. */
  async #goOver(peeked: PeekedLog, position: string): Promise<void> {
    await peeked.end();
    // The stream decodes from where the slot restarts.
    const confirmed = await peeked.confirm();
    await this.session.close();
    this.session = await openLogSession(this.ctx);
    this.peeked = null;
    this.#startStream(position, lsnText(confirmed));
  }

  #startStream(from: string, confirmed: string): void {
    const { follows } = this.slot;
    const options = { messages: follows?.messages ?? false, lazy: true };
    this.#stream = this.session.replicate({ ...startReplication(this.slot.name, from, options), confirmed });
  }
}
