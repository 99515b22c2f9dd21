import { changeFields } from '../../contract/change-fields.ts';
import type { Field, LogicalType, StreamSchema } from '../../contract/connector.ts';

export const DATES: ReadonlySet<LogicalType> = new Set(['date', 'timestamp', 'timestamp_tz']);
export const isDate = (type: LogicalType): boolean => DATES.has(type);
/** Types whose values grow in a well-defined order. */
export const isOrdered = (type: LogicalType): boolean => isDate(type) || type === 'integer' || type === 'number';

const MODIFICATION_TIME = /^(updated|modified|last_modified|changed)_?(at|on)?$/i;

/** A stream that is read by a cursor or as a whole, and what follows from its fields. */
export function streamOfFields(
  fields: Field[],
  about: Pick<StreamSchema, 'namespace' | 'name' | 'description' | 'suggested'> & { key?: string[] },
): StreamSchema {
  const { key = [], ...named } = about;
  const cursors = fields.filter((field) => field.is_cursor_candidate);
  const times = cursors.filter(({ path, type }) => isDate(type) && MODIFICATION_TIME.test(path[0] ?? ''));
  // Changes to rows without a cursor are not found.
  const usual = times.find(({ nullable }) => !nullable) ?? times[0];
  return {
    ...named,
    fields,
    supported_sync_modes: ['full_refresh', 'incremental'],
    source_defined_cursor: false,
    default_cursor_field: usual?.path ?? null,
    source_defined_primary_key: key.length > 0 ? key.map((name) => [name]) : null,
    is_resumable: cursors.length > 0,
    supports_date_window: cursors.some(({ type }) => isDate(type)),
  };
}

/** The same stream, read from the change log of the database. */
export const loggedStream = (stream: StreamSchema, key: readonly string[]): StreamSchema => ({
  ...stream,
  fields: [...stream.fields, ...changeFields(stream.fields)],
  change_log: true,
  source_defined_cursor: true,
  default_cursor_field: null,
  source_defined_primary_key: key.length > 0 ? key.map((name) => [name]) : null,
  is_resumable: true,
  supports_date_window: false,
});

/**
 * A query that counts fewer than `DISTINCT_TEXTS` if the column compares different texts as equal: the texts of a UNION
 * are compared by the collation of its first part, which has no rows here.
 */
export const countDistinctTexts = (relation: string, column: string) =>
  `select count(*) from (select ${column} from ${relation} where 1 = 0
    union select 'a' union select 'A' union select 'ä' union select 'a ')`;
export const DISTINCT_TEXTS = 4;

/** Groups rows by the values that `keyOf` gives, in the order in which the groups begin. */
export function groupRows<Row>(rows: Iterable<Row>, keyOf: (row: Row) => unknown): Row[][] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = JSON.stringify(keyOf(row));
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return [...groups.values()];
}
