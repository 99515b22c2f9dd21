import type { LogicalType } from '../../../../../contract/connector.ts';
import type { FileColumn } from '../../format.ts';
import { canonical, logicalType, textAs } from '../types.ts';
import { FIXED_TYPES, FixedSizeColumn } from './fixed-size-column.ts';
import { NumericColumn } from './numeric-column.ts';
import { TextColumn } from './text-column.ts';
import type { VectorColumn } from './vector-column.ts';

export interface CopyColumn {
  /** SQL for what `values` reads. */
  sql: string;
  values: VectorColumn;
  /** The same, if they are texts. */
  texts?: TextColumn;
}

type FixedName = keyof typeof FIXED_TYPES;

/** The types of DuckDB whose values are those of the logical types. */
const NATIVE: Record<FixedName, string> = {
  integer: 'BIGINT',
  boolean: 'BOOLEAN',
  date: 'DATE',
  timestamp: 'TIMESTAMP',
  timestamp_tz: 'TIMESTAMP WITH TIME ZONE',
  time: 'TIME',
};

/** The version of PostgreSQL's binary form of jsonb. */
const JSONB_VERSION = 1;

/**
 * A column as PostgreSQL's binary COPY has the type that columns of its logical type are created with.
 * @param column SQL for the column of the file
 * @param native its type in the file, which is of another logical type if other files of the stream differ
 */
export function copyColumn({ type }: Pick<FileColumn, 'type'>, column: string, native: string): CopyColumn {
  if (isFixed(type)) {
    const sql = logicalType(native) === type ? fixedSql(column, native) : exactly(canonical(column, native), type);
    return { sql, values: new FixedSizeColumn(FIXED_TYPES[type]) };
  }
  if (type === 'number') return { sql: `CAST(${column} AS VARCHAR)`, values: new NumericColumn() };
  if (type === 'binary') return { sql: bytesSql(column, native), values: new TextColumn() };
  const isJson = type === 'json' || type === 'array';
  const texts = new TextColumn(isJson ? JSONB_VERSION : null);
  return { sql: textAs(type, column, native), values: texts, texts };
}

const isFixed = (type: LogicalType): type is FixedName => Object.hasOwn(FIXED_TYPES, type);

function fixedSql(column: string, native: string): string {
  if (native === 'TIMESTAMP_NS') return `CAST(${canonical(column, native)} AS TIMESTAMP)`;
  return `CAST(${column} AS ${NATIVE[logicalType(native) as FixedName]})`;
}

/** The value whose text it is: other texts may stand for another value in PostgreSQL. */
function exactly(text: string, type: FixedName): string {
  const value = `TRY_CAST(${text} AS ${NATIVE[type]})`;
  const failed = `error('"' || left(${text}, 100) || '" is not of type ${type}')`;
  return `CASE WHEN ${text} IS NULL THEN NULL WHEN ${canonical(value, NATIVE[type])} = ${text} THEN ${value} ELSE ${failed} END`;
}

function bytesSql(column: string, native: string): string {
  return native === 'BLOB' ? column : `CASE WHEN ${column} IS NULL THEN NULL ELSE error('no binary data') END::BLOB`;
}
