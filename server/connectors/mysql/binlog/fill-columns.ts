import type { Cell, ConnectorContext, Field, ReadRequest } from '../../contract/connector.ts';
import { fieldByPath, fromClause } from '../../kits/sql/request.ts';
import { withSession } from '../connection/session.ts';
import type { MysqlSourceConfig } from '../connection/settings.ts';
import { identifier, literal, mysqlNames } from '../connection/sql.ts';
import { batches, keepsZeroDates } from '../read/read-rows.ts';
import { selection } from '../read/select.ts';

type Context = ConnectorContext<MysqlSourceConfig>;

/** A row from before its table had some of the columns. */
export interface Gap {
  row: Cell[];
  /** Indexes of the columns. */
  columns: readonly number[];
}

const MAX_ROWS_PER_QUERY = 500;

/** Reads missing values from the table as it is now. Changes made since then follow later in the log. */
export async function fillColumns(ctx: Context, request: ReadRequest, gaps: readonly Gap[]): Promise<void> {
  if (gaps.length === 0 || request.primary_key.length === 0) return;
  const alike = Map.groupBy(gaps, ({ columns }) => columns.join());
  for (const some of alike.values()) {
    for (let at = 0; at < some.length; at += MAX_ROWS_PER_QUERY) {
      await fill(ctx, request, some.slice(at, at + MAX_ROWS_PER_QUERY));
    }
  }
}

async function fill(ctx: Context, request: ReadRequest, gaps: readonly Gap[]): Promise<void> {
  const { columns } = gaps[0]!;
  const key = request.primary_key.map((path) => fieldByPath(request, path));
  const places = key.map(({ path }) => request.columns.findIndex(({ field }) => field.path[0] === path[0]));
  const keyOf = (row: readonly Cell[]) => JSON.stringify(places.map((place) => row[place]));
  const wanted = [
    ...key.map((field) => ({ field, masking: 'none' as const })),
    ...columns.map((at) => request.columns[at]!),
  ];
  const selected = selection(wanted, keepsZeroDates(ctx));
  const names = key.map(({ path }) => identifier(path[0]!)).join(', ');
  const values = gaps.map(({ row }) => `(${key.map((field, at) => operand(field, row[places[at]!]!)).join(', ')})`);
  const rest = ` from ${fromClause(mysqlNames, request)} where (${names}) in (${values.join(', ')})`;
  const rowsByKey = new Map<string, Cell[]>();
  await withSession(ctx, { phase: 'run' }, async (session) => {
    for await (const { rows } of batches(ctx, { session, selected, rest })) {
      for (const row of rows) rowsByKey.set(JSON.stringify(row.slice(0, key.length)), row.slice(key.length));
    }
  });
  for (const { row } of gaps) {
    const found = rowsByKey.get(keyOf(row));
    if (found) for (const [index, at] of columns.entries()) row[at] = found[index]!;
  }
}

function operand({ type, source_type }: Field, cell: string): string {
  if (type === 'integer' || type === 'number') return cell;
  if (type === 'binary') return `x'${cell.slice(2)}'`;
  if (type === 'boolean') return cell === 'true' ? "b'1'" : "b'0'";
  if (/^bit/i.test(source_type ?? '')) return `b'${cell}'`;
  return literal(type === 'timestamp_tz' ? cell.slice(0, -3) : cell);
}
