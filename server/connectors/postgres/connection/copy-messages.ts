import { SplitMessage } from '../../kits/sql/split-message.ts';
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
  readonly #split = new SplitMessage({ header: HEADER, endOf });
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
    const { message, next } = this.#split.resume(chunk);
    if (message) this.#message(message, 0, message.length);
    let at = next;
    while (!this.#ended && chunk.length - at >= HEADER) {
      const end = endOf(chunk, at);
      if (end > chunk.length) break;
      this.#message(chunk, at, end);
      at = end;
    }
    if (at === chunk.length) return;
    if (this.#ended) this.#driver(chunk.subarray(at));
    else this.#split.begin(chunk.subarray(at));
  };

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

/** Of the message at `at`, whose length does not count the code. */
const endOf = (bytes: Buffer, at: number) => at + 1 + bytes.readUInt32BE(at + 1);
