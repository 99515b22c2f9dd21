import type { Duplex } from 'node:stream';
import { keepBytes } from '../../../platform/memory/free-bytes.ts';
import { SIGNATURE, TRAILER } from '../../cells/copy-binary.ts';
import { ReceivedPieces } from '../../kits/sql/received-pieces.ts';

/** The part of the driver's connection that COPY uses. */
export interface DriverConnection {
  stream: Duplex;
  query(text: string): void;
  sendCopyFail(message: string): void;
}

const COPY_DATA = 0x64;
const COPY_DONE = 0x63;
const ERROR_RESPONSE = 0x45;
const HEADER = 5;

/** Copied bytes. `rows_end` is the end of the last complete row in them, 0 if no row ends in them. */
export interface Piece {
  bytes: Buffer;
  rows_end: number;
  /** Number of rows that end in them. The trailer of a binary copy counts as one. */
  rows: number;
}

/**
 * COPY … TO STDOUT. Yields the copied bytes without the protocol's framing, in pieces that may end inside a row.
 *
 * Takes over the driver's socket while rows arrive. The server sends each row as a separate message. Removing the
 * five-byte headers inside the received buffer costs 0.3 s of CPU per million rows on both ends together, compared to
 * 0.5–0.7 s with pg-copy-streams (which slices and joins each row), and counts the rows in passing. Forwarding the
 * headers unparsed is no faster: it saves one copy of the bytes, but the other server then receives a million messages
 * instead of a thousand.
 */
export class CopyOut implements AsyncIterable<Buffer> {
  readonly #pieces: ReceivedPieces<Piece>;
  #messages = 0;
  /** Messages that end in the pieces pushed so far. */
  #pushed = 0;
  #total: number | null = null;
  #socket: Duplex | null = null;
  #driver: ((chunk: Buffer) => void) | null = null;
  /** Bytes of the current message still to arrive, and whether they are copied data. */
  #left = 0;
  #isData = false;
  /** Bytes of the current message to drop. */
  #skip = 0;
  #header = Buffer.alloc(HEADER);
  #headerBytes = 0;

  constructor(
    private readonly text: string,
    private readonly options: {
      binary: boolean;
      /** Drops signature and trailer of a binary copy. */
      bare?: boolean;
      /** Nothing but the reading of a table happens between two rows. */
      steady?: boolean;
      onEnd(error: unknown): void;
      abandon(): void;
    },
  ) {
    this.#pieces = new ReceivedPieces({
      sizeOf: ({ bytes }) => bytes.length,
      onEnd: (error) => options.onEnd(error),
      abandon: () => options.abandon(),
    });
  }

  /** Exact after the end; before that, the rows received so far. A binary copy ends with a message that is not a row. */
  rows(): number {
    return this.#total ?? Math.max(0, this.options.binary ? this.#messages - 1 : this.#messages);
  }

  bytes(): number {
    return this.#pieces.bytes;
  }

  waits(): boolean {
    return this.#pieces.isAwaited;
  }

  /** Rows of a plain table, which come without a pause once the first one has. */
  isSteady(): boolean {
    return this.options.steady === true && this.#pieces.bytes > 0;
  }

  submit(connection: DriverConnection): void {
    const socket = connection.stream;
    const [driver] = socket.listeners('data') as ((chunk: Buffer) => void)[];
    this.#socket = socket;
    this.#driver = driver!;
    this.#pieces.comeFrom(socket);
    socket.removeListener('data', driver!);
    socket.on('data', this.#receive);
    connection.query(this.text);
  }

  readonly #receive = (chunk: Buffer) => {
    const length = chunk.length;
    // As through a tunnel: a part of what arrived there.
    if (length < chunk.buffer.byteLength) keepBytes(chunk);
    let read = 0;
    let kept = 0;
    let rowsEnd = 0;
    while (read < length) {
      if (this.#left > 0) {
        let part = Math.min(this.#left, length - read);
        if (!this.#isData) this.#handOver(chunk.subarray(read, read + part));
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
        if (!this.#isData) this.#handOver(chunk.subarray(read, read + HEADER));
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
    const signature = this.#messages === 1 ? SIGNATURE.length : 0;
    // An empty copy has both in one message.
    const trailer = this.#left === signature + TRAILER.length ? TRAILER.length : 0;
    this.#skip = signature + trailer;
  }

  /** Returns the socket to the driver, which parses the end or the error after the last row. */
  #giveBack(rest: Buffer, last: Buffer | null) {
    if (last) this.#push(last, last.length);
    const socket = this.#socket!;
    socket.removeListener('data', this.#receive);
    socket.on('data', this.#driver!);
    this.#handOver(rest);
    socket.resume();
  }

  /** The driver may hold on to a message that is not complete. */
  #handOver(bytes: Buffer) {
    keepBytes(bytes);
    this.#driver!(bytes);
  }

  #push(bytes: Buffer, rows_end: number) {
    const isWithinRow = this.#isData && this.#left > 0;
    const ended = this.#messages - (isWithinRow ? 1 : 0);
    this.#pieces.push({ bytes, rows_end, rows: ended - this.#pushed });
    this.#pushed = ended;
  }

  handleCommandComplete(message: { text: string }): void {
    const count = /^COPY (\d+)/.exec(message.text);
    if (count) this.#total = Number(count[1]);
  }

  handleReadyForQuery(): void {
    this.#pieces.end(null);
  }

  handleError(error: Error): void {
    this.#pieces.end(error);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for await (const { bytes } of this.#pieces) yield bytes;
  }

  pieces(): AsyncIterable<Piece> {
    return this.#pieces;
  }
}
