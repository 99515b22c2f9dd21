import type { Batch, GroupWriter, StreamState, WriteCounts } from '../../contract/connector.ts';
import { ofStream } from '../../contract/replication.ts';
import type { LoadTransaction, PgWriter } from './writer.ts';

/** Writers of several tables on one session, whose transactions are the same ones. */
export class PgGroupWriter implements GroupWriter {
  /** Streams with rows in the open transaction. */
  readonly #written = new Set<number>();
  /** The stream whose COPY may be open: a session has one at a time. */
  #current: number | null = null;

  constructor(
    private readonly transaction: LoadTransaction,
    readonly streams: PgWriter[],
    /** Names of the foreign keys of each table. */
    private readonly foreignKeys: readonly (readonly string[])[],
  ) {}

  async write(stream: number, batch: Batch): Promise<void> {
    if (this.#current !== stream) await this.#flush();
    this.#current = stream;
    this.#written.add(stream);
    await ofStream(stream, () => this.streams[stream]!.write(batch));
  }

  async commit(states: readonly (StreamState | null)[], all = false): Promise<Map<number, WriteCounts>> {
    await this.#flush();
    const counts = new Map<number, WriteCounts>();
    for (const at of this.streams.keys()) {
      const state = states[at];
      if (!this.#written.has(at) && !(all && state)) continue;
      if (!state) throw new Error(`stream ${at} of a group has rows and no state`);
      counts.set(at, await ofStream(at, () => this.streams[at]!.checkpoint(state)));
    }
    await this.#checkKeys(counts.size > 0);
    await this.transaction.commit();
    this.#written.clear();
    return counts;
  }

  async finish(states: readonly (StreamState | null)[]): Promise<WriteCounts[]> {
    await this.#flush();
    const counts: WriteCounts[] = [];
    for (const [at, writer] of this.streams.entries()) {
      counts.push(await ofStream(at, () => writer.finish(states[at] ?? null)));
    }
    await this.#checkKeys(true);
    await this.transaction.commit();
    await this.transaction.session.close();
    return counts;
  }

  /** The open transaction holds everything that is not committed, and ends with the session. */
  abort(): Promise<void> {
    return this.transaction.session.close();
  }

  /** By table, so that the one whose rows break a key fails alone. */
  async #checkKeys(isOpen: boolean): Promise<void> {
    if (!isOpen) return;
    const { session } = this.transaction;
    for (const [at, names] of this.foreignKeys.entries()) {
      if (names.length === 0) continue;
      await ofStream(at, async () => {
        try {
          await session.query(`set constraints ${names.join(', ')} immediate`);
        } catch (error) {
          throw session.translate(error);
        }
      });
    }
  }

  async #flush(): Promise<void> {
    const at = this.#current;
    this.#current = null;
    if (at !== null) await ofStream(at, () => this.streams[at]!.flush());
  }
}
