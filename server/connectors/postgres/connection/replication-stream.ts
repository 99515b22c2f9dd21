import { type Periodic, periodic } from '../../../platform/periodic.ts';
import { CopyMessages } from './copy-messages.ts';
import type { DriverConnection } from './copy-out.ts';
import { lsnText, lsnValue } from './lsn.ts';

const XLOG_DATA = 0x77;
const KEEPALIVE = 0x6b;
const XLOG_HEADER = 25;
const STATUS_BYTES = 34;
const POSTGRES_EPOCH_MS = 946_684_800_000;
/** The socket pauses while more than this many bytes wait to be read: decoded, they are several times as many. */
const HIGH_WATER = 256 * 1024;
/**
 * Each one confirms what is committed by then. The server moves the position at which a slot starts to decode only when
 * one of its records of running transactions is confirmed, and keeps no more than one of them in mind meanwhile: a read
 * that confirmed nothing until its end would have the next one decode most of its log a second time. The server also
 * disconnects a consumer that is silent for 60 s (wal_sender_timeout).
 */
const HEARTBEAT_MS = 1_000;
/** After this much silence the server is asked for its position. */
const ASK_MS = 100;
const CLOSE_TIMEOUT_MS = 2_000;

interface ReplicationConnection extends DriverConnection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

/** What has arrived since the last call. `position`: everything committed before it has been sent; null: unknown. */
export interface Received<Message> {
  messages: Message[];
  position: string | null;
}

/**
 * START_REPLICATION. Messages are decoded as they arrive, out of what the socket received. It pauses while too many of
 * them wait. Heartbeats are sent in any case. They confirm only the LSN that the destination has committed, so the server
 * discards no log before that.
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
  #heartbeat: Periodic | null = null;
  #bytes = 0;
  #asked = false;
  /** Further messages are not for anyone. */
  #discards = false;

  constructor(
    private readonly options: {
      text: string;
      confirmed: string;
      /** Of the bytes from `from` to `to`, which stay as they are. */
      decode(bytes: Buffer, from: number, to: number): Message;
      onEnd(error: unknown): void;
    },
  ) {
    // The next caller gets the error. Until then it must not count as unhandled.
    this.#started.promise.catch(() => {});
    this.#finished.promise.catch(() => {});
  }

  bytes(): number {
    return this.#bytes;
  }

  /** Unasked, a server without changes sends nothing. */
  waits(): boolean {
    return this.#asked;
  }

  /** Everything before this LSN is committed at the destination: the server may discard its log. */
  confirm(lsn: string): void {
    if (lsn === this.options.confirmed) return;
    if (lsnValue(lsn) > lsnValue(this.options.confirmed)) this.options.confirmed = lsn;
  }

  /** Waits until something has arrived, or until `until` is aborted, and returns all that has arrived. */
  async next(until?: AbortSignal): Promise<Received<Message>> {
    this.#asked = true;
    await this.#started.promise;
    const wake = () => this.#wake?.();
    until?.addEventListener('abort', wake);
    try {
      while (this.#waiting.length === 0 && this.#position === null) {
        this.#check();
        if (until?.aborted) break;
        const asking = setTimeout(() => this.#sendStatus(true), ASK_MS);
        await new Promise<void>((resolve) => (this.#wake = resolve));
        clearTimeout(asking);
      }
    } finally {
      until?.removeEventListener('abort', wake);
    }
    this.#asked = false;
    this.#check();
    const received = { messages: this.#waiting, position: this.#position };
    [this.#waiting, this.#waitingBytes, this.#position] = [[], 0, null];
    this.#connection!.stream.resume();
    return received;
  }

  /** Ends the stream by the protocol, which frees the slot and leaves the session open for statements. */
  async end(): Promise<void> {
    await this.#started.promise;
    this.#stopHeartbeat();
    this.#sendStatus(false);
    // The server ends once they have been read: on a busy one megabytes are on their way.
    this.#discards = true;
    this.#connection!.endCopyFrom();
    this.#connection!.stream.resume();
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(new Error('the server did not end the stream')), CLOSE_TIMEOUT_MS);
    await Promise.race([this.#finished.promise, late.promise]).finally(() => clearTimeout(timer));
  }

  submit(connection: DriverConnection): void {
    this.#connection = connection as ReplicationConnection;
    (connection as unknown as NodeJS.EventEmitter).once('replicationStart', () => {
      this.#sendStatus(false);
      const sendHeartbeat = async () => this.#sendStatus(false);
      // A lost connection fails through handleError.
      this.#heartbeat = periodic(sendHeartbeat, { every_ms: HEARTBEAT_MS, onError: () => {} });
      this.#started.resolve();
    });
    new CopyMessages(this.#receive).takeFrom(connection);
    connection.query(this.options.text);
  }

  readonly #receive = (bytes: Buffer, from: number, to: number) => {
    this.#bytes += to - from;
    if (bytes[from] === KEEPALIVE) {
      this.#position = lsnText(bytes.readBigUInt64BE(from + 1));
      if (bytes[from + 17] === 1) this.#sendStatus(false);
    } else if (bytes[from] === XLOG_DATA) this.#take(bytes, from, to);
    this.#wake?.();
  };

  #take(bytes: Buffer, from: number, to: number): void {
    if (this.#discards) return;
    try {
      this.#waiting.push(this.options.decode(bytes, from + XLOG_HEADER, to));
    } catch (error) {
      this.#failed ??= { error };
    }
    this.#waitingBytes += to - from;
    if (this.#waitingBytes > HIGH_WATER) this.#connection!.stream.pause();
  }

  #sendStatus(askPosition: boolean): void {
    if (this.#failed) return;
    const status = Buffer.alloc(STATUS_BYTES);
    const position = lsnValue(this.options.confirmed);
    status[0] = 0x72;
    for (const at of [1, 9, 17]) status.writeBigUInt64BE(position, at);
    status.writeBigInt64BE(BigInt(Date.now() - POSTGRES_EPOCH_MS) * 1000n, 25);
    status[33] = askPosition ? 1 : 0;
    this.#connection!.sendCopyFromChunk(status);
  }

  #check(): void {
    if (this.#failed) throw this.#failed.error;
  }

  #stopHeartbeat(): void {
    void this.#heartbeat?.stop();
    this.#heartbeat = null;
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#stopHeartbeat();
    if (!this.#failed) this.options.onEnd(null);
    this.#failed ??= { error: new Error('Connection terminated: the server ended the replication') };
    this.#finished.resolve();
    this.#wake?.();
  }

  handleError(error: unknown): void {
    this.#stopHeartbeat();
    if (this.#failed) return;
    this.#failed = { error };
    this.options.onEnd(error);
    this.#started.reject(error);
    this.#finished.reject(error);
    this.#wake?.();
  }
}
