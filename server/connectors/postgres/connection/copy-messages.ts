import type { DriverConnection } from './copy-out.ts';

const COPY_DATA = 0x64;
const COMMAND_COMPLETE = 0x43;
const ERROR_RESPONSE = 0x45;
const HEADER = 5;

/** Gets the bytes of a message from `from` to `to`, which stay as they are. */
type OnData = (bytes: Buffer, from: number, to: number) => void;

/**
 * Takes the data of a COPY from the driver's socket message by message, where they arrived. The driver would create
 * several objects for each of them, which costs as much as decoding a small one. It gets all other messages, and the socket
 * back at the end of the COPY.
 */
export class CopyMessages {
  #socket: DriverConnection['stream'] | null = null;
  #driver: (chunk: Buffer) => void = () => {};
  /** A message that has not arrived as a whole: its header, or all of it once its length is known. */
  #begun: Buffer | null = null;
  #length = 0;
  #ended = false;

  constructor(private readonly onData: OnData) {}

  /** Before the statement is sent. */
  takeFrom({ stream }: Pick<DriverConnection, 'stream'>): void {
    const [driver] = stream.listeners('data') as ((chunk: Buffer) => void)[];
    this.#socket = stream;
    this.#driver = driver!;
    stream.removeListener('data', driver!);
    stream.on('data', this.#receive);
  }

  readonly #receive = (chunk: Buffer) => {
    let at = this.#begun ? this.#resume(chunk) : 0;
    while (!this.#ended && chunk.length - at >= HEADER) {
      const end = at + lengthAt(chunk, at);
      if (end > chunk.length) break;
      this.#message(chunk, at, end);
      at = end;
    }
    if (at === chunk.length) return;
    if (this.#ended) this.#driver(chunk.subarray(at));
    else this.#begin(chunk.subarray(at));
  };

  #begin(bytes: Buffer): void {
    this.#begun = Buffer.allocUnsafe(bytes.length < HEADER ? HEADER : lengthAt(bytes, 0));
    this.#length = bytes.copy(this.#begun);
  }

  /** @returns where the next message begins */
  #resume(chunk: Buffer): number {
    let at = 0;
    for (let begun = this.#begun; begun; begun = this.#begun) {
      const part = chunk.copy(begun, this.#length, at);
      this.#length += part;
      at += part;
      if (this.#length < begun.length) return at;
      this.#begun = null;
      if (begun.length === HEADER && lengthAt(begun, 0) > HEADER) this.#begin(begun);
      else this.#message(begun, 0, begun.length);
    }
    return at;
  }

  #message(bytes: Buffer, from: number, to: number): void {
    const code = bytes[from];
    if (code === COPY_DATA) {
      this.onData(bytes, from + HEADER, to);
      return;
    }
    if (code === COMMAND_COMPLETE || code === ERROR_RESPONSE) this.#giveBack();
    this.#driver(bytes.subarray(from, to));
  }

  #giveBack(): void {
    this.#ended = true;
    this.#socket!.removeListener('data', this.#receive);
    this.#socket!.on('data', this.#driver);
  }
}

/** Of the message with its header, whose length does not count the code. */
const lengthAt = (bytes: Buffer, at: number) => 1 + bytes.readUInt32BE(at + 1);
