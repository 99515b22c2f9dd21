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

/** A hash of 64 bits as SQL; NULL for NULL. Other seeds, which are positive, lead to other hashes. */
type Hash = (sql: string, seed: number) => string;

const hashText: Hash = (sql, seed) => `hashtextextended(${sql}, ${seed})`;
const hashRecord: Hash = (sql, seed) => `hash_record_extended(row(${sql}), ${seed})`;

/**
 * By classes of types whose values PostgreSQL hashes and orders alike on every server. A function for the type costs half
 * of the hash of a record. Not among them: enumerations (hashed by their object ids), intervals (30 days equal a month),
 * documents (whose numbers are hashed without their signs), types without a hash.
 */
const HASHES: Record<string, Hash> = {
  // As the seed of another number: PostgreSQL's hash of a bigint is that of its halves, taken together.
  integer: (sql, seed) => `hashint4extended(${seed}, ${sql})`,
  text: hashText,
  // The server's hash has no sign, and is the seed for each value that is no number.
  numeric: (sql, seed) =>
    `hash_numeric_extended(${sql}, case when (${sql}) < 0 then -${seed} when (${sql}) < 'NaN' then ${seed} else ${seed * 2 ** 32} end)`,
  real: (sql, seed) => `hashfloat4extended(${sql}, ${seed})`,
  'double precision': (sql, seed) => `hashfloat8extended(${sql}, ${seed})`,
  boolean: (sql, seed) => `hashint4extended(${seed}, (${sql})::integer)`,
  date: hashRecord,
  'timestamp without time zone': (sql, seed) => `timestamp_hash_extended(${sql}, ${seed})`,
  // Sessions are in UTC.
  'timestamp with time zone': (sql, seed) => `timestamp_hash_extended((${sql})::timestamp, ${seed})`,
  'time without time zone': (sql, seed) => `time_hash_extended(${sql}, ${seed})`,
  uuid: (sql, seed) => `uuid_hash_extended(${sql}, ${seed})`,
  bytea: hashRecord,
  inet: (sql, seed) => `hashinetextended(${sql}, ${seed})`,
};

/** Values of one class have equal hashes on both sides, whatever their types. */
export function classOf(type: string): string | null {
  if (['smallint', 'integer', 'bigint'].includes(type)) return 'integer';
  if (TEXTS.includes(type)) return 'text';
  return type in HASHES ? type : null;
}

/** How the columns enter the statements of a comparison. */
export const digestColumns = (
  columns: readonly TypedExpression[],
  compared: readonly ComparedColumn[],
  plan: DigestPlan,
): DigestColumn[] =>
  columns.map((column, index) => {
    if (plan.forms[index] === 'canonical') return canonical(column, compared[index]!);
    const isNative = plan.forms[index] === 'native';
    const found = isNative ? native(column) : shown(column);
    if (plan.hash !== 'native') return found;
    const hash = isNative ? HASHES[classOf(column.type)!]! : hashText;
    return { ...found, value: `coalesce(${hash(found.value, index + 1)}, 0)` };
  });

function native({ sql, type }: TypedExpression): DigestColumn {
  if (TEXTS.includes(type)) return { ...asText(`${sql}::text`), text: sql };
  return { value: sql, sorted: sql, text: `${sql}::text`, parse: (text) => `${literal(text)}::${type}` };
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
