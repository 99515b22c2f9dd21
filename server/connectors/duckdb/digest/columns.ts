import { REDACTION } from '../../cells/masks.ts';
import type { DigestPlan, LogicalType, Masking } from '../../contract/connector.ts';
import type { DigestColumn, DigestDialect } from '../../kits/sql/digest/sql-digester.ts';
import { literal } from '../connection/sql.ts';
import { cellSql } from '../connection/types.ts';

/** A column of one side: its value as SQL, its type as duckdb_columns() shows it, and the type it is compared as. */
export interface TypedColumn {
  sql: string;
  source_type: string;
  type: LogicalType;
}

/** Types of which all dialects have the same canonical text. Floats, times, intervals and documents are not among them. */
const PORTABLE =
  /^(U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|DECIMAL\(.*\)|BOOLEAN|DATE|TIMESTAMP(_S|_MS| WITH TIME ZONE)?|UUID|VARCHAR|BLOB)$/;

export const isPortable = ({ source_type }: TypedColumn): boolean => PORTABLE.test(source_type);

/** As the engine masks the cells that are read. */
export function maskedColumn(column: Omit<TypedColumn, 'type'>, masking: Masking): Omit<TypedColumn, 'type'> {
  if (masking === 'none') return column;
  const cell = cellSql(column.sql, column.source_type);
  const sql = masking === 'redact' ? `CASE WHEN ${cell} IS NOT NULL THEN ${literal(REDACTION)} END` : `sha256(${cell})`;
  return { sql, source_type: 'VARCHAR' };
}

/** Two files of DuckDB show their values alike; another dialect shares the canonical text alone. */
export const digestColumn = (column: TypedColumn, form: DigestPlan['forms'][number] | undefined): DigestColumn =>
  asText(form === 'canonical' ? canonicalText(column) : cellSql(column.sql, column.source_type));

/** The text of the cell, instants in UTC, without zeros at the end of digits after the point. */
function canonicalText({ sql, source_type, type }: TypedColumn): string {
  const text = cellSql(sql, source_type);
  if (source_type === 'TIMESTAMP WITH TIME ZONE') return `regexp_replace(${text}, '\\+00(:00)?( BC)?$', '\\2')`;
  if (type !== 'number') return text;
  return `case when contains(${text}, '.') then rtrim(rtrim(${text}, '0'), '.') else ${text} end`;
}

/** Texts are compared and sorted by their bytes, whatever the collation of the column. */
const asText = (text: string): DigestColumn => ({
  value: `(${text})`,
  sorted: `encode(${text})`,
  text: `(${text})`,
  parse: (value) => `encode(${literal(value)})`,
});

export const dialect: DigestDialect = {
  hashes(values) {
    const cells = values.map((value) => `coalesce(length(${value}) || ':' || ${value}, '-')`);
    const digest = `md5(${cells.join(' || ')})`;
    return [1, 16].map((from) => `cast('0x' || substr(${digest}, ${from}, 15) as bigint)`);
  },
  oneIn: (rows) => `random() < ${1 / rows}`,
  bytes: (text) => `encode(${text})`,
};
