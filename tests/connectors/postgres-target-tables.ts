import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { destinationConfig, twoDatabases } from './postgres-support.ts';
import { errorOf, row, writingTo } from './writing.ts';

/** PostgreSQL for `writingTo`. */
export function targetTables() {
  const sides = twoDatabases();
  const { tableName, ...writing } = writingTo((target) =>
    postgresDestination.open(destinationConfig(sides.destination).ctx, target),
  );
  const content = async (order = 'id, name') =>
    (await sides.destination.sql.unsafe(`select id::int, name from "${tableName()}" order by ${order}`)).map(
      ({ id, name }) => [id, name],
    );
  const exists = async (name = tableName()) =>
    (await sides.destination.sql`select 1 from pg_class where relname = ${name}`).length > 0;
  return { ...writing, row, errorOf, sides, content, exists, tableName };
}
