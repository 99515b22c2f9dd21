import { DIGESTED_MASKS } from '../../connectors/contract/digest.ts';
import type { ConnectionRow, StreamRow } from '../../../db/schema/index.ts';
import type {
  AnySource,
  DestinationComparison,
  ReadRequest,
  SourceComparison,
  StreamSchema,
} from '../../connectors/contract/connector.ts';
import { hasDateCursor } from '../../pipeline/custom-run/streams.ts';
import { windowOf } from '../../pipeline/custom-run/windows.ts';
import { givesChanges } from '../../pipeline/stream-defaults.ts';
import {
  type PlannedColumn,
  planTransfer,
  readRequest,
  tableName,
  type TransferPlan,
} from '../../pipeline/transfer-plan.ts';

/** A stream that cannot be compared, and why. */
export class NotComparable extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** What is compared of a stream: the same columns of both sides, in the same order. */
export interface ComparableStream {
  source: SourceComparison;
  destination: DestinationComparison;
  /** Columns of the destination whose values cannot be computed on both sides. */
  columns_not_compared: { name: string; reason: string }[];
  /** Rows that were deleted at the source stay in the destination, so that those beyond the source's prove nothing. */
  keeps_deleted: boolean;
}

interface Input {
  connection: ConnectionRow;
  stream: StreamRow;
  schema: StreamSchema;
  source: AnySource;
}

/** Decides what of a stream can be compared. Pure. @throws NotComparable */
export function comparableStream(input: Input): ComparableStream {
  const { connection, stream, schema, source } = input;
  // The log of changes is not read here: the source applies filters and masks in its query.
  const digesting = { ...source, pushdown: { ...source.pushdown, masking: DIGESTED_MASKS } };
  const plan = planTransfer({ source: digesting, schema: { ...schema, change_log: false }, stream });
  if (plan.filters.length > 0) {
    throw new NotComparable(
      'filters_not_supported',
      `The source cannot apply the filters of ${stream.name} in a query`,
    );
  }
  const { compared, left_out } = columnsOf(plan, schema);
  const columns = compared.map(({ target }) => ({ name: target.name, type: target.type }));
  const key = keyOf(plan, compared);
  const window = windowOfConnection(connection, schema, stream);
  const all = readRequest({ plan, schema, stream, state: null, window });
  const read: ReadRequest = { ...all, columns: compared.map(({ field, pushed }) => ({ field, masking: pushed })) };
  const rows = rowsOf(input, plan, key);
  return {
    source: { columns, key, read },
    destination: {
      columns,
      key,
      schema: connection.destination_schema,
      table: tableName(connection, stream),
      rows,
    },
    columns_not_compared: left_out,
    keeps_deleted: stream.sync_mode === 'incremental' && !givesChanges(schema, stream),
  };
}

/** What a plain run reads. */
export const windowOfConnection = ({ start_date, schedule }: ConnectionRow, schema: StreamSchema, stream: StreamRow) =>
  windowOf({ start: start_date, end: null }, { timezone: schedule.timezone, dates: hasDateCursor(schema, stream) });

function columnsOf(plan: TransferPlan, schema: StreamSchema) {
  const compared: PlannedColumn[] = [];
  const left_out: ComparableStream['columns_not_compared'] = [];
  for (const column of plan.columns) {
    const reason = reasonAgainst(column, schema);
    if (reason === null) compared.push(column);
    else left_out.push({ name: column.target.name, reason });
  }
  if (compared.length === 0) throw new NotComparable('no_comparable_columns', 'No column can be compared');
  return { compared, left_out };
}

/** Null: both sides can compute the value. */
function reasonAgainst({ field, mapping, masking, target }: PlannedColumn, schema: StreamSchema): string | null {
  if (masking !== 'none') return 'masked_with_key';
  if (mapping && (mapping.transform !== 'none' || mapping.constant_value !== null)) return 'transformed';
  if (target.from) return 'converted';
  return schema.change_log && field.source_type === null ? 'describes_change' : null;
}

function keyOf(plan: TransferPlan, compared: PlannedColumn[]): number[] {
  return plan.primary_key.map((name) => {
    const index = compared.findIndex(({ target }) => target.name === name);
    if (index >= 0) return index;
    throw new NotComparable('key_not_comparable', `The key column ${name} cannot be compared`);
  });
}

/** Which rows of the table stand for the stream as the source has it. @throws NotComparable */
function rowsOf({ stream, schema }: Input, plan: TransferPlan, key: number[]): DestinationComparison['rows'] {
  const { name, destination_sync_mode: mode } = stream;
  if (stream.shared_destination_table) {
    throw new NotComparable('shared_destination_table', `Other streams write to the table of ${name}, too`);
  }
  if (mode === 'update') {
    throw new NotComparable('update_only', `${name} updates rows of a table that has other sources, too`);
  }
  if (mode === 'soft_delete') return { kind: 'existing' };
  if (mode !== 'append') return { kind: 'all' };
  if (givesChanges(schema, stream)) {
    throw new NotComparable('keeps_changes', `The table of ${name} has a row for each change, not one for each row`);
  }
  if (stream.sync_mode === 'full_refresh') {
    throw new NotComparable('keeps_copies', `Each run appends all rows of ${name} once more`);
  }
  if (key.length === 0 || plan.cursor_column === null) {
    throw new NotComparable(
      'keeps_versions',
      `${name} appends each version of a row, and has no key to find the latest`,
    );
  }
  return { kind: 'latest', by: plan.cursor_column };
}
