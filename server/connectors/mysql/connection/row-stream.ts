import { freeBytes } from '../../../platform/memory/free-bytes.ts';
import { ReceivedPieces } from '../../kits/sql/received-pieces.ts';
import type { RowText } from './row-text.ts';
import { type DriverCommand, type DriverConnection, type DriverPacket, TakenSocket } from './taken-socket.ts';

const QUERY = 0x03;
const END_OF_FILE = 0xfe;
const ERROR = 0xff;
/** Lines are passed on in pieces of about this size, and at the end of each chunk from the socket. */
const PIECE = 256 * 1024;

/**
 * A SELECT whose rows are yielded as COPY text, in pieces of whole lines. A driver command that takes over the socket
 * while rows arrive: the driver's own command creates an object per row and a string per cell.
 */
export class RowStream implements AsyncIterable<Buffer>, DriverCommand {
  readonly #pieces: ReceivedPieces<Buffer>;
  #state: 'header' | 'columns' | 'rows' = 'header';

  constructor(
    private readonly text: string,
    private readonly rows: RowText,
    options: { onEnd(error: Error | null): void; abandon(): void },
  ) {
    this.#pieces = new ReceivedPieces({ ...options, sizeOf: (piece) => piece.length });
  }

  bytes(): number {
    return this.#pieces.bytes;
  }

  waits(): boolean {
    return this.#pieces.isAwaited;
  }

  /** Called by the driver: first to start, later with the packet that ends the rows. @returns whether the command is done. */
  execute(packet: DriverPacket | undefined, connection: DriverConnection): boolean {
    if (packet) {
      const refused = packet.isError() ? packet.asError('utf8') : null;
      // Anything else, such as a request for a local file, must not be mistaken for an empty table.
      this.#pieces.end(refused ?? (this.#state === 'rows' ? null : new Error('the server answered without rows')));
      return true;
    }
    const socket = new TakenSocket(connection, { take: this.#take, release: freeBytes, onChunk: this.#hand });
    this.#pieces.comeFrom(socket);
    socket.write(Buffer.concat([Buffer.from([QUERY]), Buffer.from(this.text, 'utf8')]));
    return false;
  }

  /** Called by the driver when the connection breaks. */
  onResult(error: Error): void {
    this.#pieces.end(error);
  }

  /** Leaves the driver an error, the end of the rows, and any result without rows. */
  readonly #take = (bytes: Buffer, start: number, end: number): boolean => {
    const first = bytes[start];
    if (first === ERROR) return false;
    if (this.#state === 'header') {
      if (first === 0 || first === 0xfb) return false;
      this.#state = 'columns';
    } else if (first === END_OF_FILE && end - start <= 8) {
      if (this.#state === 'rows') return false;
      this.#state = 'rows';
    } else if (this.#state === 'rows') {
      this.rows.add(bytes, start, end);
      if (this.rows.length >= PIECE) this.#hand();
    }
    return true;
  };

  readonly #hand = () => {
    if (this.rows.length > 0) this.#pieces.push(this.rows.take());
  };

  [Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    return this.#pieces[Symbol.asyncIterator]();
  }
}
