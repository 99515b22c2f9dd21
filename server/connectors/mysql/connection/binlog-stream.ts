import { freeBytes } from '../../../platform/memory/free-bytes.ts';
import { type DriverCommand, type DriverConnection, type DriverPacket, TakenSocket } from './taken-socket.ts';

const BINLOG_DUMP = 0x12;
const BINLOG_DUMP_GTID = 0x1e;
/** The set of GTIDs decides. */
const THROUGH_GTID = 4;
const OK = 0x00;
/** The first event of a file follows its magic number. */
const START = 4;
/** The socket pauses while more than this many bytes wait to be read. */
const HIGH_WATER = 1024 * 1024;

/**
 * COM_BINLOG_DUMP or COM_BINLOG_DUMP_GTID: the events of the binary log as the server sends them. A driver command that
 * takes over the socket, and pauses it while too many events wait. The server never ends it, so it ends with its session.
 */
export class BinlogStream implements DriverCommand {
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** The memory of those that wait, and of those that `next` has given. */
  #memory: Buffer[] = [];
  #given: Buffer[] = [];
  #asked = false;
  #ended = false;
  #error: Error | null = null;
  #wake: (() => void) | null = null;
  #socket: TakenSocket | null = null;

  constructor(
    private readonly server_id: number,
    /** What a MySQL does not send; null: a MariaDB knows by variables of the session. */
    private readonly known: Buffer | null,
    private readonly onEnd: (error: Error | null) => void,
  ) {}

  bytes(): number {
    return this.#socket?.bytes ?? 0;
  }

  waits(): boolean {
    return this.#asked && this.#waiting.length === 0 && !this.#ended;
  }

  /**
   * Waits until something has arrived, or until `until` is aborted, and returns all events that have arrived. Their bytes
   * are gone with the next call.
   */
  async next(until?: AbortSignal): Promise<Buffer[]> {
    for (const bytes of this.#given.splice(0)) freeBytes(bytes);
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
    [this.#given, this.#memory] = [this.#memory, []];
    this.#socket?.resume();
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
    this.#socket = new TakenSocket(connection, {
      take: this.#take,
      release: (bytes) => void this.#memory.push(bytes),
      onChunk: () => this.#wake?.(),
    });
    this.#socket.write(this.known ? this.#dumpAfter(this.known) : this.#dump());
    return false;
  }

  #dump(): Buffer {
    const command = Buffer.alloc(11);
    command[0] = BINLOG_DUMP;
    command.writeUInt32LE(START, 1);
    command.writeUInt32LE(this.server_id, 7);
    return command;
  }

  #dumpAfter(known: Buffer): Buffer {
    const command = Buffer.alloc(23);
    command[0] = BINLOG_DUMP_GTID;
    command.writeUInt16LE(THROUGH_GTID, 1);
    command.writeUInt32LE(this.server_id, 3);
    // Without the name of a file.
    command.writeBigUInt64LE(BigInt(START), 11);
    command.writeUInt32LE(known.length, 19);
    return Buffer.concat([command, known]);
  }

  onResult(error: Error): void {
    this.#finish(error);
  }

  /** Leaves the driver an error, and the end. */
  readonly #take = (bytes: Buffer, start: number, end: number): boolean => {
    if (bytes[start] !== OK) return false;
    this.#waitingBytes += end - start;
    this.#waiting.push(bytes.subarray(start + 1, end));
    if (this.#waitingBytes > HIGH_WATER) this.#socket!.pause();
    return true;
  };

  #finish(error: Error | null): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.onEnd(error);
    this.#wake?.();
  }
}
