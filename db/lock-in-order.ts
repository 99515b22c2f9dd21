import { type SQL, sql } from 'drizzle-orm';

/** The ids of these rows, which it locks one after the other, so that two statements never wait for each other. */
export function lockInOrder(table: 'stream_runs' | 'connection_streams', ids: readonly string[]): SQL {
  const list =
    ids.length > 0
      ? sql.join(
          ids.map((id) => sql`${id}`),
          sql`, `,
        )
      : sql`null`;
  return sql`select id from ${sql.identifier(table)} where id in (${list}) order by id for no key update`;
}
