import type { Field } from '../../contract/connector.ts';
import type { DigestColumn } from '../../kits/sql/digest/sql-digester.ts';
import { literal } from '../connection/sql.ts';
import { bareName, isCharacter } from '../connection/types.ts';
import { textSql } from '../read/cell-sql.ts';

/** Types of which all dialects have the same canonical text. */
const PORTABLE =
  /^(tinyint|smallint|mediumint|int|integer|bigint|decimal|date|datetime|timestamp|bit|(var)?binary|(tiny|medium|long)?blob)$/;

/** `masked`: the value is a text of the source. */
export const isPortable = ({ source_type }: Field): boolean =>
  source_type !== null && (isCharacter(source_type) || PORTABLE.test(bareName(source_type)));

/** The canonical text: that of the cell, instants in UTC, without zeros at the end of digits after the point. */
export function canonicalText(field: Field, keepZeroDates: boolean): string {
  const plain = field.type === 'timestamp_tz' ? { ...field, type: 'timestamp' as const } : field;
  const text = textSql(plain, keepZeroDates);
  // Booleans of other sources are stored in TINYINT(1).
  if (plain.type === 'boolean' && bareName(plain.source_type ?? '') !== 'bit') {
    return `case ${text} when '0' then 'false' when '1' then 'true' else ${text} end`;
  }
  if (plain.type !== 'number' && plain.type !== 'timestamp') return text;
  return `if(locate('.', ${text}) > 0, trim(trailing '.' from trim(trailing '0' from ${text})), ${text})`;
}

/** Texts are compared and sorted by their bytes. */
export const digestColumn = (text: string): DigestColumn => ({
  value: text,
  sorted: `cast(${text} as binary)`,
  text,
  parse: (value) => `cast(convert(${literal(value)} using utf8mb4) as binary)`,
});
