import type { Batch, StreamState, WriteCounts } from '../../../contract/connector.ts';
import { FencedError } from '../../../contract/errors.ts';
import { ofStream } from '../../../contract/replication.ts';
import { textOrNull } from '../../../kits/sql/dialect.ts';
import { STATE_TABLE, type StoredCommit } from '../../../kits/sql/state-row.ts';
import { literal, relation } from '../../connection/sql.ts';
import { postgres } from '../dialect.ts';
import type { DirectMerge } from '../held-rows.ts';
import { mergedOf } from '../merge/merge.ts';
import type { PgSession } from '../../connection/session.ts';
import { LoadTransaction, UNFLUSHED } from '../load-transaction.ts';
import type { AheadLoad } from '../merge/beside-commit.ts';
import { ahead, isWaitedFor, undoAhead } from '../merge/merge-ahead.ts';
import type { PgWriter } from '../writer.ts';
import { StagedKeys } from './staged-keys.ts';
import type { QueryResult } from '../../connection/result.ts';

/** Where the states of all streams are, which belong to one connection. */
interface StatePlace {
  schema: string;
  connection_id: string;
}

/** Streams of a commit, by index, with the state that each of them gets. */
type Due = Map<number, StreamState | null>;

export interface CommitOptions {
  /** Also the states of streams without rows. */
  all?: boolean;
  /** False: it does not wait for the disk. */
  flushes?: boolean;
}

interface CommitHow {
  finished: boolean;
  flushes: boolean;
}

const NOTHING_MERGED = { updated: 0, deleted: 0 };

/**
 * Writers of several tables on one session, whose transactions are the same ones. A small commit is two messages to the
 * server: one merges the rows of all tables and locks the states, the other one stores the states and commits. A larger
 * one, and one that fails, goes table by table, so that an error names its table.
 */
export class ReplicationSession implements AheadLoad {
  /** Streams with rows in the open transaction. */
  readonly #written = new Set<number>();
  /** The stream whose COPY may be open: a session has one at a time. */
  #current: number | null = null;
  /** Names of the prepared statements of the session. */
  readonly #prepared = new Set<string>();
  readonly #keys: StagedKeys;

  constructor(
    private readonly transaction: LoadTransaction,
    readonly streams: PgWriter[],
    private readonly about: {
      /** Names of the foreign keys of each table. */
      foreignKeys: readonly (readonly string[])[];
      /** Of each table, as `exactKey` gives them. */
      keys: readonly (readonly number[] | null)[];
      states: StatePlace;
    },
  ) {
    this.#keys = new StagedKeys(about.keys);
  }

  /** The same tables by another session. */
  beside(session: PgSession): ReplicationSession {
    const transaction = new LoadTransaction(session, true);
    transaction.defers = this.transaction.defers;
    const streams = this.streams.map((writer) => writer.beside(transaction));
    return new ReplicationSession(transaction, streams, this.about);
  }

  /** The next commit merges what this session has staged. */
  get hasStaged(): boolean {
    return this.transaction.isOpen;
  }

  async write(stream: number, batch: Batch): Promise<void> {
    if (this.#current !== stream) await this.#flush();
    this.#current = stream;
    this.#written.add(stream);
    this.#keys.add(stream, batch);
    await ofStream(stream, () => this.streams[stream]!.write(batch));
  }

  async apply(): Promise<void> {
    await this.#flush();
    for (const [at, writer] of this.streams.entries()) {
      if (this.#written.has(at)) await ofStream(at, () => writer.mergePart());
    }
  }

  isDisjointFrom(other: ReplicationSession): boolean {
    return this.#keys.isDisjointFrom(other.#keys);
  }

  async completeAhead(): Promise<boolean> {
    await this.#flush();
    for (const at of this.#written) {
      await this.streams[at]!.stage();
      await this.streams[at]!.flush();
    }
    const { session } = this.transaction;
    this.transaction.endStaging();
    const done = await ahead(session, async () => {
      for (const at of this.#written) if (!(await this.streams[at]!.mergeAhead())) return null;
      return true;
    });
    if (!done) this.#forgetAhead();
    return done !== null;
  }

  isWaitedFor(): Promise<boolean> {
    return isWaitedFor(this.transaction.session);
  }

  async undoAhead(): Promise<void> {
    this.#forgetAhead();
    await undoAhead(this.transaction.session);
  }

  async commit(
    states: readonly (StreamState | null)[],
    { all = false, flushes = true }: CommitOptions,
  ): Promise<Map<number, WriteCounts>> {
    await this.#flush();
    const due: Due = new Map();
    for (const at of this.streams.keys()) {
      const state = states[at];
      if (!this.#written.has(at) && !(all && state)) continue;
      if (!state) throw new Error(`stream ${at} of a replication has rows and no state`);
      due.set(at, state);
    }
    const counts = await this.#commit(due, { finished: false, flushes });
    this.#written.clear();
    this.#keys.clear();
    return counts;
  }

  async finish(states: readonly (StreamState | null)[]): Promise<WriteCounts[]> {
    await this.#flush();
    for (const [at, writer] of this.streams.entries()) await ofStream(at, () => writer.ready());
    const due: Due = new Map(this.streams.map((_, at) => [at, states[at] ?? null]));
    const counts = await this.#commit(due, { finished: true, flushes: true });
    for (const writer of this.streams) writer.warn();
    await this.transaction.session.close();
    return this.streams.map((_, at) => counts.get(at)!);
  }

  /** The open transaction holds everything that is not committed, and ends with the session. */
  close(): Promise<void> {
    return this.transaction.session.close();
  }

  async #commit(due: Due, how: CommitHow): Promise<Map<number, WriteCounts>> {
    const isHeld = !this.transaction.isOpen && [...due.keys()].every((at) => this.streams[at]!.isHeld);
    const counts = due.size > 0 && isHeld ? await this.#commitHeld(due, how) : null;
    return counts ?? this.#commitStaged(due, how);
  }

  /** @returns null: the merge failed, and nothing of it is left */
  async #commitHeld(due: Due, { finished, flushes }: CommitHow): Promise<Map<number, WriteCounts> | null> {
    const merged = await this.#mergeHeld([...due.keys()]);
    if (!merged) return null;
    const commits = Array.from(due, ([at, state]) => ({
      at,
      ...this.streams[at]!.next(merged.get(at) ?? NOTHING_MERGED, { state, finished }),
    }));
    const stored = commits.map((one) => one.stored);
    const { session } = this.transaction;
    const ending = [...(flushes ? [] : [UNFLUSHED]), storeStates(this.about.states, stored), 'commit'];
    await session.script(ending, 'update states; commit');
    for (const { at, totals } of commits) this.streams[at]!.committedHeld(totals);
    return new Map(commits.map(({ at, totals }) => [at, totals.counts]));
  }

  /** Opens a transaction with the rows of these streams, and their states locked. @throws StreamsFailed */
  async #mergeHeld(streams: readonly number[]): Promise<Map<number, ReturnType<typeof mergedOf>> | null> {
    const { transaction, about } = this;
    const targets = streams.map((at) => ({ at, ...this.streams[at]!.claim, merge: this.streams[at]!.direct() }));
    const beginning = [...transaction.beginning, lockStates(about.states, targets)];
    const merges = targets.flatMap(({ at, merge }) => (merge ? [{ at, merge }] : []));
    const defined = merges.flatMap(({ merge }) => this.#prepare(merge));
    const checks = about.foreignKeys.flatMap((names) => immediate(names) ?? []);
    const statements = [...beginning, ...defined, ...merges.map(({ merge }) => merge.execute), ...checks];
    const results = await this.#tried(statements, `begin; merge ${merges.length} tables`);
    if (!results) return null;
    const fences = new Map(results[beginning.length - 1]!.rows.map(([id, fence]) => [id, Number(fence)]));
    for (const { at, stream_id, fence } of targets) {
      const stored = fences.get(stream_id) ?? null;
      if (stored !== fence) await ofStream(at, () => Promise.reject(new FencedError(stored)));
    }
    const first = beginning.length + defined.length;
    return new Map(merges.map(({ at }, place) => [at, mergedOf(results[first + place]!.rows)]));
  }

  #prepare({ prepare }: DirectMerge): string[] {
    if (!prepare || this.#prepared.has(prepare.name)) return [];
    this.#prepared.add(prepare.name);
    return [prepare.text];
  }

  /** @returns null after an error of a statement, which is found again table by table */
  async #tried(statements: readonly string[], shown: string): Promise<QueryResult[] | null> {
    const { session } = this.transaction;
    try {
      return await session.script(statements, shown);
    } catch {
      // Fails, with the reason, if the session has ended.
      await session.query('rollback; deallocate all');
      this.#prepared.clear();
      return null;
    }
  }

  async #commitStaged(due: Due, { finished, flushes }: CommitHow): Promise<Map<number, WriteCounts>> {
    const counts = new Map<number, WriteCounts>();
    for (const [at, state] of due) {
      await ofStream(at, () => this.streams[at]!.stage());
      counts.set(at, await ofStream(at, () => this.streams[at]!.commitStaged(state, finished)));
    }
    if (counts.size > 0) await this.#checkKeys();
    await this.transaction.commit({ flushes });
    return counts;
  }

  /** By table, so that the one whose rows break a key fails alone. */
  async #checkKeys(): Promise<void> {
    const { session } = this.transaction;
    for (const [at, names] of this.about.foreignKeys.entries()) {
      const check = immediate(names);
      if (check !== null) await ofStream(at, () => session.query(check));
    }
  }

  #forgetAhead(): void {
    for (const writer of this.streams) writer.forgetAhead();
  }

  async #flush(): Promise<void> {
    const at = this.#current;
    this.#current = null;
    if (at !== null) await ofStream(at, () => this.streams[at]!.flush());
  }
}

const immediate = (names: readonly string[]): string | null =>
  names.length === 0 ? null : `set constraints ${names.join(', ')} immediate`;

/** In one order, so that two attempts do not wait for each other. */
const lockStates = (
  { schema, connection_id }: StatePlace,
  streams: readonly { stream_id: string }[],
): string => `select stream_id, fence from ${relation(schema, STATE_TABLE)}
    where connection_id = ${literal(connection_id)}
      and stream_id in (${streams.map(({ stream_id }) => literal(stream_id)).join(', ')})
    order by stream_id for update`;

function storeStates({ schema, connection_id }: StatePlace, commits: readonly StoredCommit[]): string {
  const rows = commits.map(
    ({ stream_id, state, state_version, stream_run_id, finished, counts }) =>
      `(${literal(stream_id)}, ${textOrNull(postgres, state)}, ${state_version}, ${literal(stream_run_id)}, ${finished}, ${literal(counts)})`,
  );
  return `update ${relation(schema, STATE_TABLE)} s
      set state = v.state::jsonb, state_version = v.state_version, stream_run_id = v.stream_run_id,
          finished = v.finished, counts = v.counts::jsonb, updated_at = now()
     from (values ${rows.join(', ')}) as v (stream_id, state, state_version, stream_run_id, finished, counts)
    where s.connection_id = ${literal(connection_id)} and s.stream_id = v.stream_id`;
}
