import type { Duplex } from 'node:stream';
import type { RowText } from './row-text.ts';

/** The part of the driver's connection that row streams use. */
export interface DriverConnection {
  stream: Duplex;
  packetParser: { execute(chunk: Buffer): void };
  sequenceId: number;
  addCommand(command: DriverCommand): void;
  reset(done: (error: Error | null) => void): void;
  destroy(): void;
}

/** What the driver runs, one at a time. */
export interface DriverCommand {
  /** Called first to start, later with packets. @returns whether the command is done */
  execute(packet: DriverPacket | undefined, connection: DriverConnection): boolean;
  /** Called when the connection breaks. */
  onResult(error: Error): void;
}

/** A packet as the driver passes it to the current command. */
export interface DriverPacket {
  isError(): boolean;
  asError(encoding: string): Error;
}

const HEADER = 4;
const QUERY = 0x03;
const END_OF_FILE = 0xfe;
const ERROR = 0xff;
/** A payload of this size continues in the next packet. */
const FULL = 0xffffff;
/** Lines are passed on in pieces of about this size, and at the end of each chunk from the socket. */
const PIECE = 256 * 1024;
/** The socket pauses while more than this many bytes wait to be read. */
const HIGH_WATER = 1024 * 1024;

/**
 * A SELECT whose rows are yielded as COPY text, in pieces of whole lines. A driver command that takes over the socket
 * while rows arrive: the driver's own command creates an object per row and a string per cell.
 */
export class RowStream implements AsyncIterable<Buffer>, DriverCommand {
  readonly #queue: Buffer[] = [];
  #queued = 0;
  #bytes = 0;
  #ended = false;
  #error: Error | null = null;
  #wake: (() => void) | null = null;
  #connection: DriverConnection | null = null;
  #driver: DriverConnection['packetParser'] | null = null;
  #state: 'header' | 'columns' | 'rows' = 'header';
  /** Bytes of an incomplete packet, and how many are needed before parsing is worthwhile. */
  #rest: Buffer[] = [];
  #restBytes = 0;
  #needed = HEADER;
  /** Payloads of a row that spans several packets. */
  #parts: Buffer[] = [];

  constructor(
    private readonly text: string,
    private readonly rows: RowText,
    private readonly options: { onEnd(error: Error | null): void; abandon(): void },
  ) {}

  bytes(): number {
    return this.#bytes;
  }

  /** A piece that waits to be read is this process's next step. */
  waits(): boolean {
    return this.#queue.length === 0 && !this.#ended;
  }

  /** Called by the driver: first to start, later with the packet that ends the rows. @returns whether the command is done. */
  execute(packet: DriverPacket | undefined, connection: DriverConnection): boolean {
    if (packet) {
      const refused = packet.isError() ? packet.asError('utf8') : null;
      // Anything else, such as a request for a local file, must not be mistaken for an empty table.
      this.#finish(refused ?? (this.#state === 'rows' ? null : new Error('the server answered without rows')));
      return true;
    }
    this.#connection = connection;
    this.#driver = connection.packetParser;
    connection.packetParser = { execute: this.#receive };
    const body = Buffer.from(this.text, 'utf8');
    const head = Buffer.from([
      (body.length + 1) & 255,
      ((body.length + 1) >> 8) & 255,
      (body.length + 1) >> 16,
      0,
      QUERY,
    ]);
    connection.stream.write(Buffer.concat([head, body]));
    return false;
  }

  /** Called by the driver when the connection breaks. */
  onResult(error: Error): void {
    this.#finish(error);
  }

  readonly #receive = (chunk: Buffer) => {
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
      if (this.#isLast(bytes, at, size)) return this.#giveBack(bytes.subarray(at));
      if (this.#state === 'rows') this.#row(bytes, at + HEADER, { end, size });
      else if (this.#state === 'header') this.#state = 'columns';
      at = end;
    }
    if (at < bytes.length) {
      this.#rest.push(bytes.subarray(at));
      this.#restBytes = bytes.length - at;
    }
    this.#hand();
  };

  /** Whether the packet is for the driver: an error, the end of the rows, or any result without rows. */
  #isLast(bytes: Buffer, at: number, size: number): boolean {
    const first = bytes[at + HEADER];
    if (this.#parts.length > 0) return false;
    if (first === ERROR) return true;
    if (this.#state === 'header') return first === 0 || first === 0xfb;
    if (first !== END_OF_FILE || size > 8) return false;
    if (this.#state === 'rows') return true;
    this.#state = 'rows';
    return false;
  }

  #row(bytes: Buffer, start: number, { end, size }: { end: number; size: number }) {
    // The end of the column definitions, after which rows follow.
    if (size <= 8 && bytes[start] === END_OF_FILE && this.#parts.length === 0) return;
    if (size === FULL || this.#parts.length > 0) {
      this.#parts.push(Buffer.from(bytes.subarray(start, end)));
      if (size === FULL) return;
      const whole = Buffer.concat(this.#parts);
      this.#parts = [];
      this.rows.add(whole, 0, whole.length);
    } else this.rows.add(bytes, start, end);
    if (this.rows.length >= PIECE) this.#hand();
  }

  /** Returns the socket to the driver, which parses the last packet and passes it to `execute`. */
  #giveBack(last: Buffer) {
    this.#hand();
    const connection = this.#connection!;
    connection.packetParser = this.#driver!;
    connection.sequenceId = last[3]!;
    connection.packetParser.execute(last);
    connection.stream.resume();
  }

  #hand() {
    if (this.rows.length === 0) return;
    const piece = this.rows.take();
    this.#bytes += piece.length;
    this.#queued += piece.length;
    this.#queue.push(piece);
    if (this.#queued >= HIGH_WATER) this.#connection!.stream.pause();
    this.#wake?.();
  }

  #finish(error: Error | null) {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.options.onEnd(error);
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    try {
      for (;;) {
        const piece = this.#error ? undefined : this.#queue.shift();
        if (piece) {
          this.#queued -= piece.length;
          if (this.#queued < HIGH_WATER && this.#connection?.stream.isPaused()) this.#connection.stream.resume();
          yield piece;
        } else if (this.#error) throw this.#error;
        else if (this.#ended) return;
        else await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      if (!this.#ended) this.options.abandon();
    }
  }
}
