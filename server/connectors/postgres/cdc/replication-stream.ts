import type { DriverConnection } from '../read/copy-out.ts';
import { lsnText, lsnValue } from './lsn.ts';

const XLOG_DATA = 0x77;
const KEEPALIVE = 0x6b;
const XLOG_HEADER = 25;
const STATUS_BYTES = 34;
const POSTGRES_EPOCH_MS = 946_684_800_000;
/** The socket pauses above so many bytes that nobody has fetched yet. */
const HIGH_WATER = 1024 * 1024;
/** The server gives up on a reader that is silent for 60 s (wal_sender_timeout). */
const SIGN_OF_LIFE_MS = 10_000;
/** A server that has told nothing for that long is asked how far it is. */
const ASK_MS = 100;
const FAREWELL_MS = 2_000;

interface ReplicationConnection extends DriverConnection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

/** What has come since the last look. `position`: the server has sent all that was committed before it; null: unknown. */
export interface Received<Message> {
  messages: Message[];
  position: string | null;
}

/**
 * START_REPLICATION. Messages are decoded as they arrive, since the driver uses their memory again; the socket rests
 * while too many of them wait. Signs of life go out in any case, with nothing but `confirmed` in them, which is how far
 * the destination has committed: only that the server may forget.
 */
export class ReplicationStream<Message> {
  #connection: ReplicationConnection | null = null;
  #waiting: Message[] = [];
  #waitingBytes = 0;
  #position: string | null = null;
  #started = Promise.withResolvers<void>();
  #finished = Promise.withResolvers<void>();
  #failed: { error: unknown } | null = null;
  #wake: (() => void) | null = null;
  #timer: Timer | null = null;
  #bytes = 0;

  constructor(
    private readonly options: {
      text: string;
      confirmed: string;
      decode(message: Buffer): Message;
      settled(error: unknown): void;
    },
  ) {
    // Whoever waits next gets the error; until then it must not count as unhandled.
    this.#started.promise.catch(() => {});
    this.#finished.promise.catch(() => {});
  }

  bytes(): number {
    return this.#bytes;
  }

  /** All that has come; waits until there is something. */
  async next(): Promise<Received<Message>> {
    await this.#started.promise;
    while (this.#waiting.length === 0 && this.#position === null) {
      this.#check();
      const asking = setTimeout(() => this.#tell(true), ASK_MS);
      await new Promise<void>((resolve) => (this.#wake = resolve));
      clearTimeout(asking);
    }
    this.#check();
    const received = { messages: this.#waiting, position: this.#position };
    [this.#waiting, this.#waitingBytes, this.#position] = [[], 0, null];
    this.#connection!.stream.resume();
    return received;
  }

  /** Ends the stream in order, so that the slot is free and the session takes statements again. */
  async end(): Promise<void> {
    await this.#started.promise;
    this.#stopTimer();
    // What still comes is of no use; the server ends when it has been read.
    this.options.decode = () => null as Message;
    this.#connection!.endCopyFrom();
    this.#connection!.stream.resume();
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(new Error('the server did not end the stream')), FAREWELL_MS);
    await Promise.race([this.#finished.promise, late.promise]).finally(() => clearTimeout(timer));
  }

  submit(connection: DriverConnection): void {
    this.#connection = connection as ReplicationConnection;
    (connection as unknown as NodeJS.EventEmitter).once('replicationStart', () => {
      this.#tell(false);
      this.#timer = setInterval(() => this.#tell(false), SIGN_OF_LIFE_MS);
      this.#started.resolve();
    });
    connection.query(this.options.text);
  }

  handleCopyData({ chunk }: { chunk: Buffer }): void {
    this.#bytes += chunk.length;
    if (chunk[0] === KEEPALIVE) {
      this.#position = lsnText(chunk.readBigUInt64BE(1));
      if (chunk[17] === 1) this.#tell(false);
    } else if (chunk[0] === XLOG_DATA) this.#take(chunk);
    this.#wake?.();
  }

  #take(chunk: Buffer): void {
    try {
      this.#waiting.push(this.options.decode(chunk.subarray(XLOG_HEADER)));
    } catch (error) {
      this.#failed ??= { error };
    }
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes > HIGH_WATER) this.#connection!.stream.pause();
  }

  #tell(askBack: boolean): void {
    if (this.#failed) return;
    const status = Buffer.alloc(STATUS_BYTES);
    const position = lsnValue(this.options.confirmed);
    status[0] = 0x72;
    for (const at of [1, 9, 17]) status.writeBigUInt64BE(position, at);
    status.writeBigInt64BE(BigInt(Date.now() - POSTGRES_EPOCH_MS) * 1000n, 25);
    status[33] = askBack ? 1 : 0;
    this.#connection!.sendCopyFromChunk(status);
  }

  #check(): void {
    if (this.#failed) throw this.#failed.error;
  }

  #stopTimer(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#stopTimer();
    if (!this.#failed) this.options.settled(null);
    this.#failed ??= { error: new Error('Connection terminated: the server ended the replication') };
    this.#finished.resolve();
    this.#wake?.();
  }

  handleError(error: unknown): void {
    this.#stopTimer();
    if (this.#failed) return;
    this.#failed = { error };
    this.options.settled(error);
    this.#started.reject(error);
    this.#finished.reject(error);
    this.#wake?.();
  }
}
