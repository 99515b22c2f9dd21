import { DataError } from '../../../../contract/errors.ts';
import { unescaped } from './unescaped.ts';

const BLOCK = 4096;
const MAX_CHARACTERS = 200_000_000;

/**
 * The texts of a workbook, which its cells name by number. A million of them would take several times their size as
 * strings, so blocks of them are kept as UTF-8. They are unescaped when they are read: half a pair of surrogates can only
 * be written as an escape, and has no UTF-8.
 */
export class SharedStrings {
  #blocks: { bytes: Buffer; ends: Uint32Array }[] = [];
  #pending: string[] = [];
  #characters = 0;

  constructor(private readonly place: string) {}

  /** @param text as it is in the document */
  add(text: string): void {
    this.#characters += text.length;
    if (this.#characters > MAX_CHARACTERS) {
      throw new DataError(
        'workbook_too_large',
        `${this.place}: the texts of the workbook have more than ${MAX_CHARACTERS} characters. Split it`,
      );
    }
    this.#pending.push(text);
    if (this.#pending.length === BLOCK) this.#join();
  }

  /** Undefined if there is no such text. */
  at(index: number): string | undefined {
    const block = this.#blocks[Math.floor(index / BLOCK)];
    const within = index % BLOCK;
    const text = block
      ? block.bytes.toString('utf8', within === 0 ? 0 : block.ends[within - 1], block.ends[within])
      : this.#pending[index - this.#blocks.length * BLOCK];
    return text === undefined ? undefined : unescaped(text);
  }

  #join(): void {
    let end = 0;
    const ends = Uint32Array.from(this.#pending, (text) => (end += Buffer.byteLength(text)));
    this.#blocks.push({ bytes: Buffer.from(this.#pending.join('')), ends });
    this.#pending = [];
  }
}
