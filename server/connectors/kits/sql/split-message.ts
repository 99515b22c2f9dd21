/** How messages follow one another in a stream of bytes: each has a header of one size, which tells where it ends. */
export interface MessageLayout {
  header: number;
  /** Of the message at `at`, whose header is there. */
  endOf(bytes: Buffer, at: number): number;
}

const NONE = { message: null, next: 0 };

/** The message that two or more pieces of a stream share. Only it is copied; the others are used where they arrived. */
export class SplitMessage {
  /** Its header, or all of it once its length is known. */
  #begun: Buffer | null = null;
  #length = 0;

  constructor(private readonly layout: MessageLayout) {}

  /** @param bytes the end of a piece */
  begin(bytes: Buffer): void {
    const { header, endOf } = this.layout;
    this.#begun = Buffer.allocUnsafe(bytes.length < header ? header : endOf(bytes, 0));
    this.#length = bytes.copy(this.#begun);
  }

  /** @returns the message once it is whole, and where the next one begins in the piece */
  resume(piece: Buffer): { message: Buffer | null; next: number } {
    if (this.#begun === null) return NONE;
    let next = 0;
    for (let begun = this.#begun; ; begun = this.#begun) {
      const part = piece.copy(begun, this.#length, next);
      this.#length += part;
      next += part;
      if (this.#length < begun.length) return { message: null, next };
      if (this.layout.endOf(begun, 0) > begun.length) this.begin(begun);
      else {
        this.#begun = null;
        return { message: begun, next };
      }
    }
  }
}
