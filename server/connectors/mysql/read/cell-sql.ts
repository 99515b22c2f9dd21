import { DATES } from '../../kits/sql/streams.ts';
import type { Field } from '../../contract/connector.ts';
import { factName } from '../../contract/change-fields.ts';
import { identifier } from '../connection/sql.ts';
import { bareName, isSpatial, sizeOf } from '../connection/types.ts';

export const columnOf = (field: Field) => identifier(field.path[0]!);

/** What to select of a column; with its form (types.ts) it gives the cell. */
export function shownSql(field: Field): string {
  const fact = factName(field);
  if (fact !== null) return fact === '_cdc_operation' ? "'read'" : 'null';
  const column = columnOf(field);
  const type = field.source_type ?? '';
  if (isSpatial(type)) return `st_astext(${column})`;
  switch (bareName(type)) {
    case 'bit':
      return field.type === 'boolean'
        ? `case ${column} when 0 then 'false' when 1 then 'true' end`
        : `lpad(bin(${column} + 0), ${sizeOf(type)}, '0')`;
    case 'float':
      // Shown with six digits, which are not always all: then as the double that it is.
      return `if(cast(cast(${column} as char) as float) = ${column}, cast(${column} as char), cast(${column} + 0e0 as char))`;
    default:
      return column;
  }
}

/** The very text of the cell, as a string of utf8mb4: what is hashed and searched in. */
export function textSql(field: Field, keepZeroDates: boolean): string {
  const column = columnOf(field);
  if (field.type === 'binary') return `concat('\\\\x', lower(hex(${column})))`;
  if (!DATES.has(field.type)) return `convert(${shownSql(field)} using utf8mb4)`;
  const text = `convert(${column} using utf8mb4)`;
  const cell = field.type === 'timestamp_tz' ? `concat(${text}, '+00')` : text;
  return keepZeroDates ? cell : `if(${isZeroDate(field)}, null, ${cell})`;
}

/** Null for null. */
export const isZeroDate = (field: Field) =>
  `(year(${columnOf(field)}) = 0 or month(${columnOf(field)}) = 0 or dayofmonth(${columnOf(field)}) = 0)`;
