import type {
  AnySource,
  Batch,
  Cell,
  ConnectorContext,
  LogicalType,
  ReadRequest,
  StreamSchema,
} from '../../server/connectors/contract/connector.ts';

/** Two full batches of every source, and the rest. */
export const ROWS = 10_005;
/** The same of sources whose batches are limited by bytes. */
export const WIDE_ROWS = 3_005;

export function requestOf(stream: StreamSchema, more: Partial<ReadRequest> = {}): ReadRequest {
  const columns = stream.fields.map((field) => ({ field, masking: 'none' as const }));
  const base = {
    stream,
    columns,
    filters: [],
    sync_mode: 'full_refresh' as const,
    cursor_field: stream.default_cursor_field,
  };
  return { ...base, primary_key: stream.source_defined_primary_key ?? [], state: null, window: null, ...more };
}

export async function readBatches(source: AnySource, context: ConnectorContext<unknown>, request: ReadRequest) {
  const batches: Batch[] = [];
  for await (const batch of source.read(context, request)) batches.push(batch);
  return batches;
}

/**
 * The first difference between two lists of rows, or null. Comparing thousands of rows by `toEqual` takes longer than
 * reading them.
 */
export function firstDifference(found: Cell[][], expected: Cell[][]) {
  if (found.length !== expected.length) return { rows: found.length, expected: expected.length };
  const at = found.findIndex((row, index) => {
    const other = expected[index] as Cell[];
    return row.length !== other.length || row.some((cell, column) => cell !== other[column]);
  });
  return at < 0 ? null : { at, found: found[at], expected: expected[at] };
}

/** All rows of the only stream, cells by these names. JSON Lines without a line have no columns either. */
export async function readRows(
  source: AnySource,
  context: ConnectorContext<unknown>,
  names: string[],
): Promise<Cell[][]> {
  const [stream] = await source.discover(context);
  if (!stream) throw new Error('There is no stream');
  if (stream.fields.length === 0) return [];
  const fieldOf = (name: string) => stream.fields.find(({ path }) => path[0] === name) ?? stream.fields[0];
  const columns = names.map((name) => ({
    field: fieldOf(name) as StreamSchema['fields'][0],
    masking: 'none' as const,
  }));
  const batches = await readBatches(source, context, requestOf(stream, { columns }));
  return batches.flatMap(({ rows }) => rows);
}

/** Text forms that a cell of a type may have. */
export const CANONICAL: Record<LogicalType, RegExp> = {
  string: /^[^]*$/,
  integer: /^-?\d+$/,
  number: /^(-?\d+(\.\d+)?([eE][+-]?\d+)?|NaN|-?Infinity)$/,
  boolean: /^(true|false)$/,
  date: /^\d{4}-\d\d-\d\d$/,
  timestamp: /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?$/,
  timestamp_tz: /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?\+00$/,
  time: /^\d\d:\d\d:\d\d(\.\d{1,6})?$/,
  json: /^(\{|\[|"|-?\d|true|false|null)/,
  array: /^[[{]/,
  binary: /^\\x([0-9a-f]{2})*$/,
};
