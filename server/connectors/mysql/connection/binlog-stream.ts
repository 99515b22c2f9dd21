import type { DriverCommand, DriverConnection, DriverPacket } from './row-stream.ts';

const HEADER = 4;
const BINLOG_DUMP = 0x12;
const BINLOG_DUMP_GTID = 0x1e;
/** The set of GTIDs decides. */
const THROUGH_GTID = 4;
const OK = 0x00;
/** The first event of a file follows its magic number. */
const START = 4;
/** A payload of this size continues in the next packet. */
const FULL = 0xffffff;
/** The socket pauses while more than this many bytes wait to be read. */
const HIGH_WATER = 1024 * 1024;

/**
 * COM_BINLOG_DUMP or COM_BINLOG_DUMP_GTID: the events of the binary log as the server sends them. A driver command that takes over the socket, and
 * pauses it while too many events wait. The server never ends it, so it ends with its session.
 */
export class BinlogStream implements DriverCommand {
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #bytes = 0;
  #asked = false;
  #ended = false;
  #error: Error | null = null;
  #wake: (() => void) | null = null;
  #connection: DriverConnection | null = null;
  #driver: DriverConnection['packetParser'] | null = null;
  /** Bytes of an incomplete packet, and how many are needed before parsing is worthwhile. */
  #rest: Buffer[] = [];
  #restBytes = 0;
  #needed = HEADER;
  /** Payloads of an event that spans several packets. */
  #parts: Buffer[] = [];

  constructor(
    private readonly server_id: number,
    /** What a MySQL does not send; null: a MariaDB knows by variables of the session. */
    private readonly known: Buffer | null,
    private readonly onEnd: (error: Error | null) => void,
  ) {}

  bytes(): number {
    return this.#bytes;
  }

  waits(): boolean {
    return this.#asked && this.#waiting.length === 0 && !this.#ended;
  }

  /** Waits until something has arrived, or until `until` is aborted, and returns all events that have arrived. */
  async next(until?: AbortSignal): Promise<Buffer[]> {
    const wake = () => this.#wake?.();
    until?.addEventListener('abort', wake);
    this.#asked = true;
    try {
      while (this.#waiting.length === 0 && !this.#ended) {
        if (until?.aborted) break;
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      this.#asked = false;
      until?.removeEventListener('abort', wake);
    }
    if (this.#waiting.length === 0 && this.#ended) {
      throw this.#error ?? Object.assign(new Error('the server ended the binary log'), { code: 'ECONNRESET' });
    }
    const events = this.#waiting;
    [this.#waiting, this.#waitingBytes] = [[], 0];
    if (this.#connection?.stream.isPaused()) this.#connection.stream.resume();
    return events;
  }

  /** Nothing more is read. The session has to be closed. */
  end(): void {
    this.#finish(null);
  }

  execute(packet: DriverPacket | undefined, connection: DriverConnection): boolean {
    if (packet) {
      this.#finish(packet.isError() ? packet.asError('utf8') : null);
      return true;
    }
    this.#connection = connection;
    this.#driver = connection.packetParser;
    connection.packetParser = { execute: this.#receive };
    connection.stream.write(this.known ? this.#dumpAfter(this.known) : this.#dump());
    return false;
  }

  #dump(): Buffer {
    const command = Buffer.alloc(HEADER + 11);
    command[0] = 11;
    command[4] = BINLOG_DUMP;
    command.writeUInt32LE(START, 5);
    command.writeUInt32LE(this.server_id, 11);
    return command;
  }

  #dumpAfter(known: Buffer): Buffer {
    const head = Buffer.alloc(HEADER + 23);
    head.writeUIntLE(23 + known.length, 0, 3);
    head[4] = BINLOG_DUMP_GTID;
    head.writeUInt16LE(THROUGH_GTID, 5);
    head.writeUInt32LE(this.server_id, 7);
    // Without the name of a file.
    head.writeBigUInt64LE(BigInt(START), 15);
    head.writeUInt32LE(known.length, 23);
    return Buffer.concat([head, known]);
  }

  onResult(error: Error): void {
    this.#finish(error);
  }

  readonly #receive = (chunk: Buffer) => {
    this.#bytes += chunk.length;
    this.#restBytes += chunk.length;
    this.#rest.push(chunk);
    if (this.#restBytes < this.#needed) return;
    const bytes = this.#rest.length === 1 ? chunk : Buffer.concat(this.#rest, this.#restBytes);
    [this.#rest, this.#restBytes, this.#needed] = [[], 0, HEADER];
    let at = 0;
    while (bytes.length - at >= HEADER) {
      const size = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16);
      const end = at + HEADER + size;
      if (end > bytes.length) {
        this.#needed = HEADER + size;
        break;
      }
      // An error, or the end: the driver parses it, and passes it to `execute`.
      if (this.#parts.length === 0 && bytes[at + HEADER] !== OK) return this.#giveBack(bytes.subarray(at));
      this.#take(bytes.subarray(at + HEADER, end), size === FULL);
      at = end;
    }
    if (at < bytes.length) {
      this.#rest.push(bytes.subarray(at));
      this.#restBytes = bytes.length - at;
    }
    this.#wake?.();
  };

  #take(payload: Buffer, continues: boolean): void {
    this.#waitingBytes += payload.length;
    if (continues || this.#parts.length > 0) {
      this.#parts.push(payload);
      if (continues) return;
      this.#waiting.push(Buffer.concat(this.#parts).subarray(1));
      this.#parts = [];
    } else this.#waiting.push(payload.subarray(1));
    if (this.#waitingBytes > HIGH_WATER) this.#connection!.stream.pause();
  }

  #giveBack(last: Buffer): void {
    const connection = this.#connection!;
    connection.packetParser = this.#driver!;
    connection.sequenceId = last[3]!;
    connection.packetParser.execute(last);
    connection.stream.resume();
  }

  #finish(error: Error | null): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.onEnd(error);
    this.#wake?.();
  }
}
