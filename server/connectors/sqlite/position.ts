import type { Database } from 'bun:sqlite';
import type { Field, ReadRequest } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { windowOf } from '../kits/sql/request.ts';
import { resumeCursor } from '../kits/sql/cursors/safe-bound.ts';
import { withoutTrailingZeros } from '../cells/decimals.ts';
import { microsOf, timestampText } from '../cells/timestamp-text.ts';
import { BREATH_ROWS, breathe, fromClause, identifier } from './database.ts';
import type { SqliteValue } from './types.ts';

const DAY_MICROS = 86_400_000_000;

export interface Condition {
  sql: string;
  values: (string | number | bigint)[];
}

/** Where an incremental read resumes: rows with the same cursor are read again. */
export function resumeCondition({ state }: ReadRequest, field: Field): Condition[] {
  const cursor = resumeCursor(state);
  return cursor === null ? [] : [{ sql: `${columnOf(field)} >= ?`, values: [storedForm(field, cursor)] }];
}

export const columnOf = (field: Field) => `t.${identifier(field.path[0] ?? '')}`;

function storedForm(field: Field, text: string): string | number | bigint {
  if (field.type !== 'integer' && field.type !== 'number') return text;
  if (/^-?\d{1,19}$/.test(text)) return BigInt.asIntN(64, BigInt(text)) === BigInt(text) ? BigInt(text) : Number(text);
  const number = Number(text);
  if (text.trim() !== '' && !Number.isNaN(number)) return number;
  throw new ConfigurationError('invalid_cursor', `"${text.slice(0, 100)}" is not a valid ${field.type}`);
}

/** The window, in the form of the column's own texts: SQLite compares dates as texts. */
export async function windowConditions(database: Database, request: ReadRequest): Promise<Condition[]> {
  const limited = windowOf(request);
  if (!limited) return [];
  const { field, window } = limited;
  const column = columnOf(field);
  const sample = await firstText(database, `select ${column} as cell from ${fromClause(request.stream)}`);
  const bound = (operator: string, value: string | null): Condition[] =>
    value === null ? [] : [{ sql: `${column} ${operator} ?`, values: [boundText(field, value, sample)] }];
  return [...bound('>=', window.start), ...bound('<', window.end)];
}

/** Row by row: to find the first value behind millions of NULLs is one step of SQLite otherwise, which nothing interrupts. */
async function firstText(database: Database, select: string): Promise<string> {
  let passed = 0;
  for (const { cell } of database.prepare<{ cell: SqliteValue }, []>(select).iterate()) {
    if (cell !== null) return String(cell);
    passed += 1;
    if (passed % BREATH_ROWS === 0) await breathe();
  }
  return '';
}

/** The first value that is not before the instant. */
function boundText(field: Field, value: string, sample: string): string {
  const micros = microsOf(value);
  if (Number.isNaN(micros)) throw new ConfigurationError('invalid_window', `"${value}" is not a date or timestamp`);
  if (field.type === 'date') return timestampText(Math.ceil(micros / DAY_MICROS) * DAY_MICROS).slice(0, 10);
  const separator = sample[10] ?? ' ';
  const withSeparator = (text: string) => text.replace(' ', separator);
  // Without a zone, fractions have any length, and a shorter text sorts before a longer one.
  if (field.type === 'timestamp') return withSeparator(withoutTrailingZeros(timestampText(micros).slice(0, 26)));
  const places = Math.max(0, sample.length - '2026-01-31T23:59:59.Z'.length);
  const unit = 10 ** (6 - places);
  const text = withSeparator(timestampText(Math.ceil(micros / unit) * unit));
  return `${text.slice(0, places > 0 ? 20 + places : 19)}Z`;
}
