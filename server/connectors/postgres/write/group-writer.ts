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
    await this.transaction.commit();
    await this.transaction.session.close();
    return counts;
  }

  /** The open transaction holds everything that is not committed, and ends with the session. */
  abort(): Promise<void> {
    return this.transaction.session.close();
  }

  async #flush(): Promise<void> {
    const at = this.#current;
    this.#current = null;
    if (at !== null) await ofStream(at, () => this.streams[at]!.flush());
  }
}
