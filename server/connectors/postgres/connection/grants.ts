import { identifier } from './sql.ts';
import type { PgSession } from './session.ts';

/** Statements with which the owner of a schema lets this user read everything in it, tables to come included. */
export async function grantsToRead(session: PgSession, schemas: readonly string[]): Promise<string[]> {
  const { user } = await namesOf(session);
  return (schemas.length > 0 ? schemas : ['public'])
    .map(identifier)
    .flatMap((schema) => [
      `GRANT USAGE ON SCHEMA ${schema} TO ${user}`,
      `GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${user}`,
      `ALTER DEFAULT PRIVILEGES IN SCHEMA ${schema} GRANT SELECT ON TABLES TO ${user}`,
    ]);
}

/** Statements of which either lets this user create tables: in the schema, or in schemas of its own. */
export async function grantsToWrite(session: PgSession, schema: { name: string; exists: boolean }): Promise<string[]> {
  const { user, database } = await namesOf(session);
  const own = `GRANT CREATE ON DATABASE ${database} TO ${user}`;
  return schema.exists ? [`GRANT USAGE, CREATE ON SCHEMA ${identifier(schema.name)} TO ${user}`, own] : [own];
}

async function namesOf(session: PgSession): Promise<{ user: string; database: string }> {
  const { rows } = await session.query('select current_user, current_database()');
  const [[user, database] = []] = rows;
  return { user: identifier(user ?? ''), database: identifier(database ?? '') };
}
