import type { Duplex } from 'node:stream';

/** The part of the driver's connection that a COPY works on. */
export interface DriverConnection {
  stream: Duplex;
  query(text: string): void;
  sendCopyFail(message: string): void;
}

const COPY_DATA = 0x64;
const COPY_DONE = 0x63;
const ERROR_RESPONSE = 0x45;
const HEADER = 5;
/** What a copy in binary form begins with, in front of its first row; it ends with a message of two bytes. */
const SIGNATURE_BYTES = 19;
const TRAILER_BYTES = 2;
/** The socket pauses above so many bytes that nobody has fetched yet. */
const HIGH_WATER = 1024 * 1024;

/** Copied bytes; `rows_end` is where in them the last row that ends in them does, 0 where none does. */
export interface Piece {
  bytes: Buffer;
  rows_end: number;
  /** How many rows end in them; in binary form the message at the end counts as one. */
  rows: number;
}

/**
 * COPY … TO STDOUT. Yields the copied bytes without the protocol's framing, in pieces that end anywhere.
 *
 * Takes over the driver's socket while rows come. The server sends each row as a message of its own; taking the
 * five-byte headers out inside the received buffer costs 0.3 s of CPU per million rows, both ends included, against
 * 0.5–0.7 s of pg-copy-streams (which slices and joins each row), and it counts the rows on the way. Forwarding the
 * headers as well, unparsed, was no faster: it saves one move of the bytes but makes the other server take a million
 * messages instead of a thousand.
 */
export class CopyOut implements AsyncIterable<Buffer> {
  readonly #queue: Piece[] = [];
  #queued = 0;
  #messages = 0;
  /** Of messages, those that end in pieces pushed so far. */
  #pushed = 0;
  #total: number | null = null;
  #bytes = 0;
  #ended = false;
  #error: Error | null = null;
  #wake: (() => void) | null = null;
  #socket: Duplex | null = null;
  #driver: ((chunk: Buffer) => void) | null = null;
  /** Bytes of the current message that are still to come, and whether they are copied data. */
  #left = 0;
  #isData = false;
  /** Bytes of the current message that are left out. */
  #skip = 0;
  #header = Buffer.alloc(HEADER);
  #headerBytes = 0;

  constructor(
    private readonly text: string,
    private readonly options: {
      binary: boolean;
      /** Rows alone: without what a copy in binary form begins and ends with. */
      bare?: boolean;
      settled(error: unknown): void;
      abandon(): void;
    },
  ) {}

  /** Exact after the end; before, the rows received so far. Binary ends with a message that is no row. */
  rows(): number {
    return this.#total ?? Math.max(0, this.options.binary ? this.#messages - 1 : this.#messages);
  }

  bytes(): number {
    return this.#bytes;
  }

  submit(connection: DriverConnection): void {
    const socket = connection.stream;
    const [driver] = socket.listeners('data') as ((chunk: Buffer) => void)[];
    this.#socket = socket;
    this.#driver = driver!;
    socket.removeListener('data', driver!);
    socket.on('data', this.#receive);
    connection.query(this.text);
  }

  readonly #receive = (chunk: Buffer) => {
    const length = chunk.length;
    let read = 0;
    let kept = 0;
    let rowsEnd = 0;
    while (read < length) {
      if (this.#left > 0) {
        let part = Math.min(this.#left, length - read);
        if (!this.#isData) this.#driver!(chunk.subarray(read, read + part));
        else if (this.#skip > 0) {
          part = Math.min(part, this.#skip);
          this.#skip -= part;
        } else {
          if (kept !== read) chunk.copyWithin(kept, read, read + part);
          kept += part;
        }
        this.#left -= part;
        read += part;
        if (this.#isData && this.#left === 0) rowsEnd = kept;
        continue;
      }
      let code = chunk[read]!;
      if (this.#headerBytes === 0 && (code === COPY_DONE || code === ERROR_RESPONSE)) {
        this.#giveBack(chunk.subarray(read), kept > 0 ? chunk.subarray(0, kept) : null);
        return;
      }
      if (this.#headerBytes === 0 && length - read >= HEADER) {
        this.#left = chunk.readInt32BE(read + 1) - 4;
        this.#isData = code === COPY_DATA;
        if (!this.#isData) this.#driver!(chunk.subarray(read, read + HEADER));
        read += HEADER;
      } else {
        const part = Math.min(HEADER - this.#headerBytes, length - read);
        chunk.copy(this.#header, this.#headerBytes, read, read + part);
        this.#headerBytes += part;
        read += part;
        if (this.#headerBytes < HEADER) break;
        this.#headerBytes = 0;
        code = this.#header[0]!;
        this.#left = this.#header.readInt32BE(1) - 4;
        this.#isData = code === COPY_DATA;
        if (!this.#isData) this.#driver!(Buffer.from(this.#header));
      }
      if (this.#isData) this.#beginRow();
    }
    if (kept > 0) this.#push(chunk.subarray(0, kept), rowsEnd);
  };

  #beginRow() {
    this.#messages++;
    if (!this.options.bare) return;
    const signature = this.#messages === 1 ? SIGNATURE_BYTES : 0;
    // Without a row, both are in one message.
    const trailer = this.#left === signature + TRAILER_BYTES ? TRAILER_BYTES : 0;
    this.#skip = signature + trailer;
  }

  /** The driver parses what comes after the last row: it tells us the end or the error. */
  #giveBack(rest: Buffer, last: Buffer | null) {
    if (last) this.#push(last, last.length);
    const socket = this.#socket!;
    socket.removeListener('data', this.#receive);
    socket.on('data', this.#driver!);
    this.#driver!(rest);
    socket.resume();
  }

  #push(bytes: Buffer, rows_end: number) {
    const isWithinRow = this.#isData && this.#left > 0;
    const ended = this.#messages - (isWithinRow ? 1 : 0);
    this.#queue.push({ bytes, rows_end, rows: ended - this.#pushed });
    this.#pushed = ended;
    this.#bytes += bytes.length;
    this.#queued += bytes.length;
    if (this.#queued >= HIGH_WATER) this.#socket!.pause();
    this.#wake?.();
  }

  handleCommandComplete(message: { text: string }): void {
    const count = /^COPY (\d+)/.exec(message.text);
    if (count) this.#total = Number(count[1]);
  }

  handleReadyForQuery(): void {
    this.#settle(null);
  }

  handleError(error: Error): void {
    this.#settle(error);
  }

  #settle(error: Error | null) {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.options.settled(error);
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for await (const { bytes } of this.pieces()) yield bytes;
  }

  async *pieces(): AsyncGenerator<Piece> {
    try {
      for (;;) {
        const piece = this.#error ? undefined : this.#queue.shift();
        if (piece) {
          this.#queued -= piece.bytes.length;
          if (this.#queued < HIGH_WATER && this.#socket?.isPaused()) this.#socket.resume();
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
