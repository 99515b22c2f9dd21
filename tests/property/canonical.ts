import type postgres from 'postgres';
import { type Dialect, type Form, type Kind, quoted } from './kinds.ts';

/*
 * Each database converts its values to text by its own SQL. PostgreSQL then gives the texts of one form the same
 * spelling by casting them. None of this is code of the service.
 */

const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
const backticked = (name: string) => `\`${name.replaceAll('`', '``')}\``;
export const nameOf = (dialect: Dialect, name: string) => (dialect === 'mysql' ? backticked(name) : identifier(name));

/** Bytes of a text in hexadecimal, since drivers decode texts differently. */
const hexText: Record<Dialect, (text: string) => string> = {
  postgres: (text) => `encode(convert_to(${text}, 'UTF8'), 'hex')`,
  mysql: (text) => `lower(hex(convert(${text} using utf8mb4)))`,
  duckdb: (text) => `lower(hex(encode(${text})))`,
  sqlite: (text) => `lower(hex(cast(${text} as blob)))`,
};
const plainText: Record<Dialect, (value: string) => string> = {
  postgres: (value) => `${value}::text`,
  mysql: (value) => `cast(${value} as char)`,
  duckdb: (value) => `${value}::varchar`,
  sqlite: (value) => `cast(${value} as text)`,
};

/** SQL of the value of a source's column. */
export function sourceSql(dialect: Dialect, kind: Kind, name: string): string {
  const column = nameOf(dialect, name);
  const text = kind.shown?.(column) ?? plainText[dialect](column);
  return orNull(column, isText(kind.form) ? hexText[dialect](padding(kind.form, text)) : text);
}

/** SQL of the value of a destination's column of any type. */
export function targetSql(dialect: Dialect, { form, type }: { form: Form; type: string }, name: string): string {
  const column = nameOf(dialect, name);
  const text = storedText(dialect, { form, type: type.toLowerCase() }, column);
  return orNull(column, isText(form) ? hexText[dialect](padding(form, text)) : text);
}

/** Some functions convert NULL to another value. */
const orNull = (column: string, text: string) => `case when ${column} is not null then ${text} end`;

const isText = (form: Form) => form === 'text' || form === 'padded';
const padding = (form: Form, text: string) => (form === 'padded' ? `rtrim(${text})` : text);

function storedText(dialect: Dialect, { form, type }: { form: Form; type: string }, column: string): string {
  if (dialect === 'postgres') {
    return type === 'bytea' ? `encode(${column}, 'hex')` : `${column}::text`;
  }
  const plain = plainText[dialect](column);
  if (dialect === 'duckdb') return type === 'blob' ? `lower(hex(${column}))` : plain;
  if (form === 'boolean' && /^(tinyint|bit)/.test(type))
    return `case ${column} when 1 then 'true' when 0 then 'false' end`;
  if (form === 'timestamp_tz' && /^(datetime|timestamp)/.test(type)) return `concat(${column}, '+00')`;
  if (/blob|binary/.test(type)) return `lower(hex(${column}))`;
  if (type.startsWith('float')) return `cast(cast(${column} as double) as char)`;
  return type.startsWith('bit') ? `lpad(bin(${column} + 0), ${/\d+/.exec(type)?.[0] ?? '1'}, '0')` : plain;
}

/** Casts that give equal values one spelling. */
const SPELLING: Partial<Record<Form, string>> = {
  decimal: 'trim_scale(v::numeric)::text',
  // Databases differ in whether zero has a sign, and all compare both zeros as equal.
  double: '(v::float8 + 0)::text',
  single:
    "case when v ~ '^-?(NaN|nan|inf)' then (v::float4 + 0::float4)::text else (v::float8::float4 + 0::float4)::text end",
  boolean: 'v::boolean::text',
  date: 'v::date::text',
  timestamp: 'v::timestamp::text',
  timestamp_tz: 'v::timestamptz::text',
  time: 'v::time::text',
  interval: 'v::interval::text',
  uuid: 'v::uuid::text',
  inet: 'v::inet::text',
  json: 'v::jsonb::text',
  array: 'elements(v)',
  binary: String.raw`lower(regexp_replace(v, '^\\x', ''))`,
};

/** An array as JSON and as PostgreSQL writes it: its elements as texts. Bounds other than 1 stay in front. */
const ELEMENTS = String.raw`create function leaves(v jsonb) returns jsonb language sql as $$
  select case jsonb_typeof(v)
    when 'array' then (select coalesce(jsonb_agg(leaves(e) order by n), '[]') from jsonb_array_elements(v) with ordinality l(e, n))
    when 'boolean' then to_jsonb(case when v::boolean then 't' else 'f' end)
    when 'null' then v
    else to_jsonb(v #>> '{}') end $$;
  create function elements(v text) returns text language sql as $$
  select case
    when v ~ '^\{' then to_jsonb(v::text[])::text
    when v ~ '^\[-?\d+:' then substring(v from '^[^=]*') || to_jsonb(v::text[])::text
    else leaves(v::jsonb)::text end $$`;

/** Creates the function `spelled(form, text)`. A text that is no value of the form stays unchanged. */
export async function createSpelling(sql: postgres.Sql): Promise<void> {
  const cases = Object.entries(SPELLING).map(([form, cast]) => `when ${quoted(form)} then ${cast}`);
  await sql.unsafe(ELEMENTS);
  await sql.unsafe(`create function spelled(form text, given text) returns text language plpgsql set timezone = 'UTC' as $$
    declare v text := case when given like '% (BC)%' then replace(given, ' (BC)', '') || ' BC' else given end;
    begin return case form ${cases.join(' ')} else v end;
    exception when others then return 'not a ' || form || ': ' || given; end $$`);
}

/** The texts of each row in their canonical spelling; `forms` in the order of the columns. */
export async function spell(
  sql: postgres.Sql,
  forms: readonly Form[],
  rows: readonly (string | null)[][],
): Promise<(string | null)[][]> {
  const spelled = forms.flatMap((form, index) => (isText(form) ? [] : [index]));
  if (rows.length === 0 || spelled.length === 0) return rows.map((row) => [...row]);
  const list = spelled.map((index, at) => `spelled(${quoted(forms[index]!)}, r ->> ${at})`).join(', ');
  const given = JSON.stringify(rows.map((row) => spelled.map((index) => row[index] ?? null)));
  const found = await sql
    .unsafe(`select ${list} from jsonb_array_elements($1::text::jsonb) with ordinality e(r, n) order by n`, [given])
    .values();
  return rows.map((row, at) => {
    const copy = [...row];
    for (const [place, index] of spelled.entries()) copy[index] = (found[at]?.[place] ?? null) as string | null;
    return copy;
  });
}
