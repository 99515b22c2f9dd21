import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type postgres from 'postgres';

/** The comment of a table, or of a column of it. */
export interface SchemaComment {
  table: string;
  column: string | null;
  text: string;
}

const TABLE = /(?:\/\*\*((?:[^*]|\*(?!\/))*)\*\/\s*)?export const \w+ = pgTable\(\s*'(\w+)'/g;
const COLUMN = /\/\*\*((?:[^*]|\*(?!\/))*)\*\/\s*\w+:\s*\w+\(\s*'(\w+)'/g;
/** Columns that many tables have. */
const COMMON: [column: string, text: string][] = [
  ['id', 'Version 7 UUID.'],
  ['account_id', 'The account that the row belongs to.'],
  ['created_at', 'The time of the insert.'],
  ['updated_at', 'The time of the last change.'],
  ['deleted_at', 'When a user deleted it. The row stays for the history.'],
  ['revision', 'Incremented by each change of a user.'],
];

/** The comments in db/schema, so that the database explains itself with the same words. */
export function schemaComments(): SchemaComment[] {
  const folder = join(import.meta.dir, 'schema');
  return readdirSync(folder).flatMap((file) => commentsIn(readFileSync(join(folder, file), 'utf8')));
}

function commentsIn(source: string): SchemaComment[] {
  const tables = [...source.matchAll(TABLE)];
  return tables.flatMap((match, index) => {
    const [all, text, table = ''] = match;
    const body = source.slice(match.index + all.length, tables[index + 1]?.index);
    const columns = [...body.matchAll(COLUMN)].map(
      ([, comment = '', column = '']) => [column, plain(comment)] as const,
    );
    const named = new Map([...COMMON.filter(([column]) => body.includes(`\n    ${column}: `)), ...columns]);
    return [
      ...(text === undefined ? [] : [{ table, column: null, text: plain(text) }]),
      ...[...named].map(([column, comment]) => ({ table, column, text: comment })),
    ];
  });
}

const plain = (comment: string) => comment.replaceAll(/\s*\n\s*\*\s*/g, ' ').trim();

/** Stores the comments that differ from those in the database. */
export async function storeComments(client: postgres.Sql): Promise<void> {
  const stored = await client<{ place: string; text: string }[]>`
    select concat_ws('.', c.relname, a.attname) as place, d.description as text
    from pg_description d join pg_class c on c.oid = d.objoid and c.relnamespace = 'public'::regnamespace
    left join pg_attribute a on a.attrelid = c.oid and a.attnum = d.objsubid and d.objsubid > 0
    where d.classoid = 'pg_class'::regclass`;
  const known = new Map(stored.map(({ place, text }) => [place, text]));
  for (const { table, column, text } of schemaComments()) {
    if (known.get(column === null ? table : `${table}.${column}`) === text) continue;
    const target = column === null ? `table "${table}"` : `column "${table}"."${column}"`;
    await client.unsafe(`comment on ${target} is '${text.replaceAll("'", "''")}'`);
  }
}
