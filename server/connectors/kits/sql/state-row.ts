import type { ChangedValues } from '../../cells/value-gate.ts';
import type { CommittedState, HeldPosition, StreamState, WriteCounts } from '../../contract/connector.ts';
import { FencedError } from '../../contract/errors.ts';
import { inOrder, type Row, type SqlDatabase, type SqlSession, textOrNull } from './dialect.ts';
import type { PlacedTarget } from './target.ts';

/** Lives in the schema of the tables it describes, one row per stream, committed together with the stream's rows. */
export const STATE_TABLE = '_pipeline_state';

export const NO_COUNTS: WriteCounts = { rows_loaded: 0, rows_updated: 0, rows_deleted: 0, bytes_loaded: 0 };

/** Columns that one database adds to the table, by name. */
export type ExtraState = Record<string, string | null>;

export interface StateCommit {
  /** Null: the stored state stays. */
  state: StreamState | null;
  counts: WriteCounts;
  /** Of this stream run. Absent: none. */
  changed?: ChangedValues;
  finished: boolean;
  extra?: ExtraState;
}

/** What a commit stores in the row of `_pipeline_state`, as text. */
export interface StoredCommit {
  stream_id: string;
  fence: number;
  state: string | null;
  state_version: number;
  stream_run_id: string;
  finished: boolean;
  counts: string;
}

/** The row of `_pipeline_state` that a writer has claimed with its fence. */
export interface StateRow {
  /** What the control plane does not know yet; null: nothing. */
  committed: CommittedState | null;
  /** Totals of this stream run that are committed. */
  counts: WriteCounts;
  /** Values that earlier attempts of this stream run have changed and committed. */
  changed: ChangedValues;
  /** The stream has committed to this schema before, in any run. */
  known: boolean;
  /** The last commit left rows in the table. */
  left_rows: boolean;
  /** Call it when they are gone: they are no longer expected after a commit without rows. */
  forgetRows(): void;
  /** The last commit, whatever the control plane knows. `openTarget` sets `has_table`. */
  held: HeldPosition;
  extra: ExtraState;
  /**
   * Records a commit in the open transaction. May be called again, in the same transaction or after a rollback.
   * @param session another one than that of the claim
   * @throws FencedError when a newer attempt has claimed the stream.
   */
  record(commit: StateCommit, session?: SqlSession): Promise<void>;
  /** What `record` would store, for one statement that records several streams. */
  next(commit: StateCommit): StoredCommit;
  /** Call it after the COMMIT: the next commit counts on from the one recorded last. */
  confirm(): void;
  /** Stores extra columns alone, in the open transaction. @throws FencedError as above. @param session as above */
  note(extra: ExtraState, session?: SqlSession): Promise<void>;
  /** As `note`, where what this stream run has committed is gone. */
  forget(extra: ExtraState): Promise<void>;
}

/**
 * Creates a schema and a table in it where they are missing, and columns that an earlier version did not create, where
 * the database reports its columns. Call it under the lock for definitions.
 */
export async function ensureTable(
  { session, dialect }: SqlDatabase,
  { schema, table, columns, later = [] }: NewTable,
): Promise<'created' | 'present'> {
  // "if not exists" would require the right to create even where there is nothing to create.
  const { rows } = await session.query(dialect.findNames(schema, table));
  const [[foundSchema, foundTable, foundColumns] = [null, null, null]] = rows;
  if (foundSchema == null) await session.query(dialect.createSchema(schema));
  if (foundTable != null) {
    const present = foundColumns == null ? null : new Set<string>(JSON.parse(foundColumns));
    const missing = present ? later.filter(({ name }) => !present.has(name)) : [];
    const added = missing.map(({ name, type }) => `add column ${name} ${type} null`);
    if (missing.length > 0) {
      for (const statement of dialect.alterTable(dialect.relation(schema, table), added))
        await session.query(statement);
    }
    return 'present';
  }
  await session.query(
    `create table ${dialect.relation(schema, table)} (${columns.join(', ')}) ${dialect.tableOptions}`,
  );
  return 'created';
}

interface NewTable {
  schema: string;
  table: string;
  /** Definitions. */
  columns: readonly string[];
  /** Of these columns, those that tables of earlier versions may lack. */
  later?: readonly { name: string; type: string }[];
}

/** @param extra columns of this database alone, all of them nullable texts. */
export async function ensureStateTable(db: SqlDatabase, schema: string, extra: readonly string[] = []): Promise<void> {
  const { types, hasKeys } = db.dialect;
  const columns = [
    `connection_id ${types.id} not null`,
    `stream_id ${types.id} not null`,
    `state ${types.state} null`,
    'state_version bigint default 0 not null',
    'fence bigint not null',
    `stream_run_id ${types.id} null`,
    `finished ${types.boolean} default false not null`,
    `counts ${types.state} null`,
    ...extra.map((name) => `${name} ${types.text} null`),
    `updated_at ${types.instant} not null`,
    ...(hasKeys ? ['primary key (connection_id, stream_id)'] : []),
  ];
  const later = extra.map((name) => ({ name, type: types.text }));
  await ensureTable(db, { schema, table: STATE_TABLE, columns, later });
}

/**
 * Raises the stored fence to the target's, in the open transaction.
 * @throws FencedError when the stored fence is higher.
 */
export async function claimState(
  { session, dialect }: SqlDatabase,
  target: PlacedTarget,
  extra: readonly string[] = [],
): Promise<StateRow> {
  const { literal, forUpdate, now } = dialect;
  const table = dialect.relation(target.schema, STATE_TABLE);
  const [connection, stream] = [literal(target.connection_id), literal(target.stream_id)];
  const key = `connection_id = ${connection} and stream_id = ${stream}`;
  const columns = 'connection_id, stream_id, state_version, fence, finished, updated_at';
  const values = `${connection}, ${stream}, 0, ${target.fence}, false, ${now}`;
  const shown = ['fence', 'state', 'state_version', 'stream_run_id', 'finished', 'counts', ...extra].join(', ');
  const { rows } = await inOrder(session, [
    dialect.insertIfAbsent({ table, columns, values, key }),
    `update ${table} set fence = ${target.fence} where ${key} and fence <= ${target.fence}`,
    `select ${shown} from ${table} where ${key}${forUpdate}`,
  ]);
  const [row] = rows;
  if (!row || BigInt(row[0]!) > BigInt(target.fence)) throw new FencedError(fenceOf(row));
  const update = async (assignments: string[], on = session) => {
    const own = `${key} and fence = ${target.fence}`;
    const set = `${assignments.join(', ')}, updated_at = ${now}`;
    const { count } = await on.query(`update ${table} set ${set} where ${own}`);
    if (count > 0) return;
    // Some databases do not count a row that has the values already.
    const found = await on.query(`select fence from ${table} where ${key}${forUpdate}`);
    if (found.rows[0]?.[0] !== String(target.fence)) throw new FencedError(fenceOf(found.rows[0]));
  };
  const stored = storedState(row, target);
  const left_rows = leftRows(row);
  const ahead = stored.same_stream_run || stored.state_version > target.state_version;
  return {
    committed: ahead ? stored : null,
    counts: stored.counts,
    changed: stored.same_stream_run ? changedValues(row) : {},
    known: row[3] != null,
    left_rows,
    held: {
      state: stored.state,
      state_version: stored.state_version,
      stream_run_id: row[3] ?? null,
      has_table: true,
    },
    extra: Object.fromEntries(extra.map((name, at) => [name, row[6 + at] ?? null])),
    ...recorder({ dialect }, { target, stored, left_rows, update }),
  };
}

/** Of a row whose last commit is gone: no run has it. */
const NO_STREAM_RUN = '';

const assigned = (dialect: SqlDatabase['dialect'], extra: ExtraState) =>
  Object.entries(extra).map(([name, value]) => `${name} = ${textOrNull(dialect, value)}`);

function recorder(
  { dialect }: Pick<SqlDatabase, 'dialect'>,
  claimed: {
    target: PlacedTarget;
    stored: CommittedState;
    left_rows: boolean;
    update(assignments: string[], session?: SqlSession): Promise<void>;
  },
): Pick<StateRow, 'record' | 'next' | 'confirm' | 'note' | 'forget' | 'forgetRows'> {
  const { target, stored, update } = claimed;
  let { left_rows } = claimed;
  // A state older than the control plane's must not return as a newer one: its cursor was reset there.
  const isCurrent = stored.state_version >= target.state_version && stored.state !== null;
  let current: Versioned = {
    state: isCurrent ? JSON.stringify(stored.state) : null,
    version: Math.max(stored.state_version, target.state_version),
  };
  let recorded = current;
  const next: StateRow['next'] = (commit) => {
    const { state } = commit;
    recorded = state ? { state: JSON.stringify(state), version: current.version + 1 } : current;
    return storedCommit({ target, left_rows, ...recorded }, commit);
  };
  return {
    next,
    async record(commit, session) {
      const row = next(commit);
      const assignments = [
        `state = ${textOrNull(dialect, row.state)}`,
        `state_version = ${row.state_version}`,
        `stream_run_id = ${dialect.literal(row.stream_run_id)}`,
        `finished = ${row.finished}`,
        `counts = ${dialect.literal(row.counts)}`,
        ...assigned(dialect, commit.extra ?? {}),
      ];
      await update(assignments, session);
    },
    confirm() {
      current = recorded;
    },
    forgetRows() {
      left_rows = false;
    },
    note: (extra, session) => update(assigned(dialect, extra), session),
    async forget(extra) {
      const counts = dialect.literal(JSON.stringify({ left_rows }));
      const none = dialect.literal(NO_STREAM_RUN);
      await update([...assigned(dialect, extra), `counts = ${counts}`, `stream_run_id = ${none}`]);
    },
  };
}

const storedCommit = (
  { target, left_rows, state, version }: { target: PlacedTarget; left_rows: boolean } & Versioned,
  { counts, changed = {}, finished }: StateCommit,
): StoredCommit => ({
  stream_id: target.stream_id,
  fence: target.fence,
  state,
  state_version: version,
  stream_run_id: target.stream_run_id,
  finished,
  counts: JSON.stringify({ ...counts, changed, left_rows: leavesRows(target, counts, left_rows) }),
});

interface Versioned {
  state: string | null;
  version: number;
}

const fenceOf = (row: Row | undefined) => (row?.[0] == null ? null : Number(row[0]));

/** Whether a commit certainly leaves rows. `update` counts rows that its table may lack. */
function leavesRows({ mode }: PlacedTarget, counts: WriteCounts, before: boolean): boolean {
  if (mode === 'update' || counts.rows_deleted > 0) return false;
  return counts.rows_loaded > 0 || (mode !== 'overwrite' && before);
}

const leftRows = (row: Row): boolean => row[5] != null && JSON.parse(row[5]).left_rows === true;

/** What is stored beside the counts. */
interface BesideCounts {
  left_rows?: boolean;
  changed?: ChangedValues;
}

const changedValues = (row: Row): ChangedValues =>
  row[5] == null ? {} : ((JSON.parse(row[5]) as BesideCounts).changed ?? {});

function countsOf(text: string): WriteCounts {
  const { left_rows: _, changed: __, ...counts } = JSON.parse(text) as WriteCounts & BesideCounts;
  return counts;
}

const TRUE = new Set(['t', 'true', '1']);
export const isTrue = (text: string | null | undefined): boolean => TRUE.has(text ?? '');

function storedState([, state, version, streamRun, finished, counts]: Row, target: PlacedTarget): CommittedState {
  const sameRun = streamRun === target.stream_run_id;
  return {
    state: state == null ? null : JSON.parse(state),
    state_version: Number(version),
    same_stream_run: sameRun,
    finished: sameRun && isTrue(finished),
    counts: { ...NO_COUNTS, ...(sameRun && counts ? countsOf(counts) : null) },
  };
}
