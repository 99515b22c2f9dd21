import type { ComparedColumn, DigestPlan } from '../../contract/digest.ts';
import type { DigestColumn } from '../../kits/sql/digest/sql-digester.ts';
import { literal } from '../connection/sql.ts';

/** A column of one side: its value as SQL, and the type of it. */
export interface TypedExpression {
  sql: string;
  /** As format_type() prints it, without modifiers. */
  type: string;
}

const TEXTS = ['text', 'character varying'];

/**
 * Types whose values PostgreSQL hashes and orders alike on every server. Integers of all sizes have the same hashes. Not
 * among them: enumerations (hashed by their object ids), intervals (30 days equal a month), types without a hash.
 */
const CLASSES: Record<string, string> = {
  ...Object.fromEntries(['smallint', 'integer', 'bigint'].map((type) => [type, 'integer'])),
  ...Object.fromEntries(TEXTS.map((type) => [type, 'text'])),
  ...Object.fromEntries(
    [
      'numeric',
      'real',
      'double precision',
      'boolean',
      'date',
      'timestamp without time zone',
      'timestamp with time zone',
      'time without time zone',
      'uuid',
      'bytea',
      'jsonb',
      'inet',
    ].map((type) => [type, type]),
  ),
};

export const classOf = (type: string): string | null => CLASSES[type] ?? null;

/** How the columns enter the statements of a comparison. */
export const digestColumns = (
  columns: readonly TypedExpression[],
  compared: readonly ComparedColumn[],
  plan: DigestPlan,
): DigestColumn[] =>
  columns.map((column, index) => {
    if (plan.forms[index] === 'native') return native(column);
    return plan.forms[index] === 'canonical' ? canonical(column, compared[index]!) : shown(column);
  });

function native({ sql, type }: TypedExpression): DigestColumn {
  if (TEXTS.includes(type)) return { ...asText(`${sql}::text`), text: sql };
  // PostgreSQL's hash of a bigint is that of its halves, taken together: 1 has that of 2^32. The upper half tells them apart.
  const value = classOf(type) === 'integer' ? `${sql}, ${sql}::bigint >> 32` : sql;
  return { value, sorted: sql, text: `${sql}::text`, parse: (text) => `${literal(text)}::${type}` };
}

/** Types of which all dialects have the same canonical text. Floats, intervals and documents are not among them. */
const PORTABLE = new Set([
  'smallint',
  'integer',
  'bigint',
  'numeric',
  'boolean',
  'date',
  'timestamp without time zone',
  'timestamp with time zone',
  'uuid',
  'text',
  'character varying',
  'character',
  'bytea',
]);
export const isPortable = (type: string): boolean => PORTABLE.has(type);

/** Instants are in UTC. Digits after the point, which dialects fill up differently, end with the last but zero. */
function canonical({ sql, type }: TypedExpression, { type: logical }: ComparedColumn): DigestColumn {
  if (type === 'timestamp with time zone') return asText(`(${sql} at time zone 'UTC')::text`);
  if (logical !== 'number' && type !== 'numeric') return shown({ sql, type });
  const text = `(${sql})::text`;
  return asText(`case when ${text} like '%.%' then rtrim(rtrim(${text}, '0'), '.') else ${text} end`);
}

/** The texts that COPY writes. format() keeps the trailing spaces of character(n), and boolean is written out. */
const shown = ({ sql, type }: TypedExpression): DigestColumn =>
  asText(type === 'boolean' ? `${sql}::text` : `case when ${sql} is distinct from null then format('%s', ${sql}) end`);

/** Other collations hash and order texts by rules of their own. */
function asText(sql: string): DigestColumn {
  const exact = `(${sql}) collate "C"`;
  return { value: exact, sorted: exact, text: sql, parse: literal };
}
