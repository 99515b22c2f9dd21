import type { Copied } from '../../kits/sql/rejects.ts';
import { SIGNATURE } from '../../cells/copy-binary.ts';
import type { CopyIn } from '../connection/copy-in.ts';
import type { PgSession } from '../connection/session.ts';
import { WAITING } from '../connection/waiting.ts';

/** How more sessions come to copy into the same table. */
export interface Sharing {
  /** How many sessions may copy at the same time. */
  limit: number;
  /** One more session, in a transaction. */
  open(): Promise<PgSession>;
  /**
   * Between two COPYs of the first session: makes the table visible to the others, and begins its next transaction. Absent:
   * the others have a table of their own.
   */
  share?(): Promise<void>;
  /** `open` has failed, so no other session joins. */
  refused(error: unknown): void;
}

interface Copying {
  binary: boolean;
  /** Null: the first session copies all rows. */
  sharing: Sharing | null;
  /** The share of an interval that passed in waiting at which one more session joins. */
  waiting: number;
  /** Begins a COPY. `shared`: into a table that other sessions see. */
  begin(session: PgSession, shared: boolean): CopyIn;
}

/** One session that copies, and the bytes that wait for it. */
class Part {
  /** The server has not accepted all bytes yet. */
  busy = false;
  #rows = 0;
  #copy: CopyIn;
  #sent: Promise<unknown> = Promise.resolve();

  constructor(
    readonly session: PgSession,
    copy: CopyIn,
    private readonly on: { free(): void; failed(error: unknown): void },
  ) {
    this.#copy = copy;
  }

  get rows(): number {
    return this.#rows;
  }

  /** @param onSent once the bytes are not read any more; never called if that remains unknown */
  put(bytes: Uint8Array, onSent?: () => void): void {
    this.busy = true;
    const sent = this.#sent.then(() => this.#copy.write(bytes));
    this.#sent = sent;
    void this.#watch(sent, onSent);
  }

  async #watch(sent: Promise<boolean>, onSent?: () => void): Promise<void> {
    try {
      if (await sent) onSent?.();
    } catch (error) {
      this.on.failed(this.session.translate(error));
      return;
    }
    if (this.#sent !== sent) return;
    this.busy = false;
    this.on.free();
  }

  /** Ends the COPY. The transaction stays open. */
  async end(): Promise<void> {
    try {
      await this.#sent;
      this.#rows += await this.#copy.end();
    } catch (error) {
      throw this.session.translate(error);
    }
  }

  restart(copy: CopyIn): void {
    this.#copy = copy;
  }
}

/**
 * A COPY by as many sessions as its rows wait for. It begins with one, in whose transaction the table was created, or gets
 * the rows of the others. More join while most of the time passes in waiting for those there are: a single connection may have a slow
 * line, or a server process that is busy with its rows. Rows are never split: a session that has the beginning of
 * a row gets the rest of it.
 */
export class ParallelCopy {
  readonly #parts: [Part, ...Part[]];
  /** All sessions but the first, also those that have not copied yet. */
  readonly #helpers: PgSession[] = [];
  /** The part that has the last bytes. */
  #current: Part;
  /** Its last row has not ended. */
  #within = false;
  #bytes = 0;
  #failed: { error: unknown } | null = null;
  #wake = () => {};
  #shared = false;
  /** Wait for the end of a row to join. */
  #joining: PgSession[] = [];
  /** How many are being opened or wait to join. One that cannot be opened stays among them, so that no other is tried. */
  #opening = 0;
  #closed = false;
  #seen = performance.now();
  #waited = 0;

  constructor(
    session: PgSession,
    private readonly how: Copying,
  ) {
    this.#current = this.#partOf(session);
    this.#parts = [this.#current];
  }

  /**
   * Resolves when a session can take more.
   * @param rows_end end of the last complete row in the bytes; 0: none, or it is unknown
   * @param onSent once nothing reads the bytes any more; not called if that remains unknown
   */
  async write(bytes: Uint8Array, rows_end: number, onSent?: () => void): Promise<void> {
    if (bytes.length === 0) return;
    this.#bytes += bytes.length;
    await this.#place(bytes, { rows_end, onSent });
    const began = performance.now();
    await this.#untilFree(rows_end === 0);
    this.#countWait(performance.now() - began);
  }

  /** Ends all COPYs. The others commit, and the transaction of the first session stays open. */
  async end(): Promise<Copied> {
    this.#closed = true;
    const [first, ...others] = this.#parts;
    await Promise.all(this.#joining.map((session) => session.close()));
    await Promise.all(
      others.map(async (part) => {
        await part.end();
        await part.session.query('commit', { slow: true });
        await part.session.close();
      }),
    );
    // Until here its COPY was open: a server may end a transaction that is idle.
    await first.end();
    return { rows: this.#parts.reduce((sum, part) => sum + part.rows, 0), bytes: this.#bytes };
  }

  /** Ends all sessions but the first. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#helpers.map((session) => session.close()));
  }

  async #place(
    bytes: Uint8Array,
    { rows_end, onSent }: { rows_end: number; onSent: (() => void) | undefined },
  ): Promise<void> {
    const joins = this.#joining.length > 0 && rows_end > 0;
    let rest = bytes;
    if (this.#within) {
      const isCut = rows_end > 0 && (joins || this.#free() !== this.#current);
      // Of a chunk for two sessions the memory is not used again.
      if (isCut) this.#current.put(bytes.subarray(0, rows_end));
      else this.#current.put(bytes, onSent);
      this.#within = !isCut && rows_end < bytes.length;
      if (!isCut) return;
      rest = bytes.subarray(rows_end);
    }
    if (joins) await this.#join();
    if (rest.length === 0) return;
    this.#current = this.#free();
    this.#current.put(rest, rest === bytes ? onSent : undefined);
    this.#within = rows_end < bytes.length;
  }

  #free(): Part {
    const { busy } = this.#current;
    return (busy && this.#parts.find((part) => !part.busy)) || this.#current;
  }

  /** `current`: the rest of a long row goes to one session alone. */
  async #untilFree(current: boolean): Promise<void> {
    const isFree = () => (current ? !this.#current.busy : this.#parts.some(({ busy }) => !busy));
    while (!this.#failed && !isFree()) await new Promise<void>((resolve) => (this.#wake = resolve));
    if (this.#failed) throw this.#failed.error;
  }

  #countWait(ms: number): void {
    this.#waited += ms;
    const now = performance.now();
    const passed = now - this.#seen;
    if (passed < WAITING.of_ms) return;
    const isWaiting = this.#waited >= this.how.waiting * passed;
    [this.#seen, this.#waited] = [now, 0];
    if (isWaiting) this.#open();
  }

  #open(): void {
    const { sharing } = this.how;
    if (!sharing || this.#opening > 0) return;
    const { length } = this.#parts;
    this.#opening = Math.min(WAITING.more * length, sharing.limit - length);
    for (let left = this.#opening; left > 0; left -= 1) void this.#openAnother(sharing);
  }

  async #openAnother(sharing: Sharing): Promise<void> {
    try {
      const session = await sharing.open();
      this.#helpers.push(session);
      if (this.#closed) await session.close();
      else this.#joining.push(session);
    } catch (error) {
      if (!this.#closed) sharing.refused(error);
    }
  }

  /** Between two rows. */
  async #join(): Promise<void> {
    const sessions = this.#joining.splice(0);
    this.#opening -= sessions.length;
    if (!this.#shared) await this.#share();
    for (const session of sessions) {
      const part = this.#partOf(session);
      this.#sign(part);
      this.#parts.push(part);
    }
    // What these have not been waited for yet says nothing.
    [this.#seen, this.#waited] = [performance.now(), 0];
  }

  async #share(): Promise<void> {
    this.#shared = true;
    const [first] = this.#parts;
    const { sharing } = this.how;
    if (!sharing?.share) return;
    await first.end();
    await sharing.share();
    first.restart(this.how.begin(first.session, true));
    this.#sign(first);
  }

  #partOf(session: PgSession): Part {
    return new Part(session, this.how.begin(session, this.#shared), {
      free: () => this.#wake(),
      failed: (error) => {
        this.#failed ??= { error };
        this.#wake();
      },
    });
  }

  /** The stream itself brings the signature of the first COPY. */
  #sign(part: Part): void {
    if (this.how.binary) part.put(SIGNATURE);
  }
}
