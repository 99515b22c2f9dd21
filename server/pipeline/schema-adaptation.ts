import type { ConnectionRow, StreamRow } from '../../db/schema/index.ts';
import type { StreamSchema } from '../connectors/contract/connector.ts';
import { type Overrides, withCatalogChoices } from './overrides.ts';
import { composeChanges, sameThing, type SchemaChange } from './schema-diff.ts';
import { isLeftOut, judge, leftOut, takesOver, type Verdict } from './schema-policy.ts';
import { type FieldChoice, tableName } from './transfer-plan.ts';

/** The changes of one stream that discovery found. `schema`: the current one, or the last one of a removed stream. */
export interface StreamDrift {
  schema: StreamSchema;
  overrides: Overrides;
  changes: SchemaChange[];
}

/** How a connection adapts to changes of its source. */
export interface Adaptation {
  /** Changes that affect the connection and were not known before. */
  news: SchemaChange[];
  /** All changes that wait for a review from now on. */
  pending: (SchemaChange & { breaking: boolean })[];
  new_streams: StreamSchema[];
  /** Changed field settings, by id of the connection's stream. */
  fields: Map<string, FieldChoice[]>;
  /** One of the news breaks the connection. */
  breaking: boolean;
  /** New fields whose values are missing in rows loaded before (`taken`), or from now on (`left_out`). */
  missing: { taken: boolean; left_out: boolean };
}

interface Given {
  connection: Pick<ConnectionRow, 'schema_change_policy' | 'kind' | 'table_prefix'>;
  rows: StreamRow[];
  waiting: SchemaChange[];
  drifts: StreamDrift[];
}

/** Pure. */
export function planAdaptation(given: Given): Adaptation {
  const { connection, rows, waiting, drifts } = given;
  const rowOf = finder(rows, drifts);
  const verdictOf = (change: SchemaChange): Verdict => judge(change, rowOf(change));
  const isWaiting = (change: SchemaChange) => waiting.some((one) => sameThing(one, change));
  const news = drifts
    .flatMap(({ changes }) => changes)
    .filter((change) => isWaiting(change) || (verdictOf(change) !== 'none' && !isDeclined(change, rowOf(change))));
  const open = composeChanges(waiting, news).filter((change) => verdictOf(change) !== 'none');
  const taken = open.filter((change) => verdictOf(change) === 'non_breaking' && mayTake(given, change));
  const pending = open
    .filter((change) => !taken.includes(change))
    .map((change) => ({ ...change, breaking: verdictOf(change) === 'breaking' }));
  return {
    news,
    pending,
    new_streams: connection.kind === 'elt' ? streamsOf(taken, drifts) : [],
    fields: changedFields(rows, { waiting, pending }),
    breaking: pending.some((change) => change.breaking && news.some((one) => sameThing(one, change))),
    missing: {
      taken: taken.some((change) => isAddition(change) && isUnderWay(rowOf(change))),
      left_out: pending.some((change) => isAddition(change) && isUnderWay(rowOf(change))),
    },
  };
}

const isOf = (change: SchemaChange, stream: { namespace: string | null; name: string }) =>
  change.namespace === stream.namespace && change.stream_name === stream.name;

/** Finds the settings of a stream, with the overrides of the catalog. */
function finder(rows: StreamRow[], drifts: StreamDrift[]) {
  const withOverrides = rows.map((row) => {
    const drift = drifts.find(({ schema }) => schema.namespace === row.namespace && schema.name === row.name);
    return drift ? withCatalogChoices(row, drift.schema, drift.overrides) : row;
  });
  return (change: SchemaChange) => withOverrides.find((row) => isOf(change, row));
}

/** A field that was excluded before it was removed stays excluded when it comes back. */
const isDeclined = ({ field_path, before }: SchemaChange, row: StreamRow | undefined) =>
  before === null &&
  field_path !== null &&
  (row?.fields as FieldChoice[] | undefined)?.some((one) => !one.selected && Bun.deepEquals(one.path, field_path));

/** A new stream needs its own table, and reverse ETL never adds streams to an application by itself. */
function mayTake({ connection, rows, drifts }: Given, change: SchemaChange): boolean {
  if (!takesOver(connection.schema_change_policy, change)) return false;
  if (change.subject !== 'stream') return true;
  const tables = rows.filter((row) => row.selected).map((row) => tableName(connection, row));
  const names = drifts.map(({ schema }) => schema.name);
  const table = tableName(connection, { name: change.stream_name, destination_table: null });
  const alone = names.filter((name) => name === change.stream_name).length === 1;
  return connection.kind === 'elt' && alone && !tables.includes(table);
}

const streamsOf = (taken: SchemaChange[], drifts: StreamDrift[]) =>
  drifts
    .map(({ schema }) => schema)
    .filter((schema) => taken.some((change) => change.subject === 'stream' && isOf(change, schema)));

const isAddition = ({ subject, before }: SchemaChange) => subject === 'field' && before === null;

/** The next read continues after rows that were read without the new field. */
const isUnderWay = (row: StreamRow | undefined) => row?.sync_mode === 'incremental' && row.state !== null;

/** Excludes fields while they wait for a review, and removes that setting afterwards. */
function changedFields(
  rows: StreamRow[],
  { waiting, pending }: { waiting: SchemaChange[]; pending: SchemaChange[] },
): Adaptation['fields'] {
  const changed = new Map<string, FieldChoice[]>();
  for (const row of rows) {
    const wanted = pending.filter((change) => isAddition(change) && isOf(change, row));
    const waited = waiting.filter((change) => isAddition(change) && isOf(change, row));
    if (wanted.length + waited.length === 0) continue;
    const has = (changes: SchemaChange[], path: string[]) =>
      changes.some((change) => Bun.deepEquals(change.field_path, path));
    const own = row.fields as FieldChoice[];
    const kept = own.filter(({ path }, index) => has(wanted, path) || !has(waited, path) || !isLeftOut(own[index]!));
    const added = wanted
      .map((change) => change.field_path ?? [])
      .filter((path) => !own.some((one) => Bun.deepEquals(one.path, path)));
    const fields = [...kept, ...added.map(leftOut)];
    if (!Bun.deepEquals(fields, own)) changed.set(row.id, fields);
  }
  return changed;
}
