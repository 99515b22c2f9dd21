import { keepBytes } from '../../../platform/memory/free-bytes.ts';
import { SplitMessage } from '../../kits/sql/split-message.ts';
import type { Duplex } from 'node:stream';

/** The part of the driver's connection that commands of our own use. */
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
  readInt16(): number;
  /** Null: the byte that stands for NULL in rows. */
  readLengthCodedNumber(): number | string | null;
}

export interface PacketHandler {
  /**
   * A payload, which may have been sent in several packets.
   * @returns whether it was taken; one that was not, and all that follows, is for the driver
   */
  take(bytes: Buffer, start: number, end: number): boolean;
  /** After the last payload of these bytes: their memory belongs to the handler. */
  release(bytes: Buffer): void;
  /** After the payloads of a chunk from the socket. */
  onChunk(): void;
}

const HEADER = 4;
/** A payload of this size continues in the next packet. */
const FULL = 0xffffff;

/** The socket of the driver while a command reads the server's packets itself. */
export class TakenSocket {
  /** Bytes that have arrived. */
  bytes = 0;
  readonly #driver: DriverConnection['packetParser'];
  readonly #split = new SplitMessage({ header: HEADER, endOf });
  /** Payloads of the packets before the one that completes them. */
  #parts: Buffer[] = [];

  constructor(
    private readonly connection: DriverConnection,
    private readonly handler: PacketHandler,
  ) {
    this.#driver = connection.packetParser;
    connection.packetParser = { execute: this.#receive };
  }

  /** Sends a command with its header. */
  write(command: Buffer): void {
    const header = Buffer.alloc(HEADER);
    header.writeUIntLE(command.length, 0, 3);
    this.connection.stream.write(Buffer.concat([header, command]));
  }

  pause(): void {
    this.connection.stream.pause();
  }

  resume(): void {
    if (this.connection.stream.isPaused()) this.connection.stream.resume();
  }

  readonly #receive = (chunk: Buffer) => {
    this.bytes += chunk.length;
    const { message, next } = this.#split.resume(chunk);
    if (message) {
      if (!this.#isTaken(message, HEADER, message.length))
        return this.#giveBack(Buffer.concat([message, chunk.subarray(next)]));
      this.handler.release(message);
    }
    let at = next;
    while (chunk.length - at >= HEADER) {
      const end = endOf(chunk, at);
      if (end > chunk.length) break;
      if (!this.#isTaken(chunk, at + HEADER, end)) return this.#giveBack(chunk.subarray(at));
      at = end;
    }
    if (at < chunk.length) this.#split.begin(chunk.subarray(at));
    this.#end(chunk);
  };

  /** All of its packets are taken or copied. */
  #end(chunk: Buffer): void {
    // As through a tunnel: a part of what arrived there.
    if (chunk.length < chunk.buffer.byteLength) keepBytes(chunk);
    this.handler.release(chunk);
    this.handler.onChunk();
  }

  #isTaken(bytes: Buffer, start: number, end: number): boolean {
    const continues = end - start === FULL;
    if (!continues && this.#parts.length === 0) return this.handler.take(bytes, start, end);
    // A copy: a part would keep its whole chunk.
    this.#parts.push(Buffer.from(bytes.subarray(start, end)));
    if (continues) return true;
    const whole = Buffer.concat(this.#parts);
    this.#parts = [];
    const isTaken = this.handler.take(whole, 0, whole.length);
    if (isTaken) this.handler.release(whole);
    return isTaken;
  }

  /** The driver parses its packet and passes it to the `execute` of the command. */
  #giveBack(last: Buffer): void {
    const { connection } = this;
    this.handler.onChunk();
    connection.packetParser = this.#driver;
    connection.sequenceId = last[3]!;
    connection.packetParser.execute(last);
    connection.stream.resume();
  }
}

/** Of the packet at `at`. */
const endOf = (bytes: Buffer, at: number) =>
  at + HEADER + (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16));
