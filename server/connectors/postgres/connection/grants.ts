import { identifier } from './sql.ts';
import type { PgSession } from './session.ts';

/** Statements with which the owner of a schema lets this user read everything in it, tables to come included. */
export async function grantsToRead(session: PgSession, schemas: readonly string[]): Promise<string[]> {
  const { user } = await namesOf(session);
  return readingSchemas(user, schemas);
}

/** `user`: quoted. */
const readingSchemas = (user: string, schemas: readonly string[]): string[] =>
  (schemas.length > 0 ? schemas : ['public'])
    .map(identifier)
    .flatMap((schema) => [
      `GRANT USAGE ON SCHEMA ${schema} TO ${user}`,
      `GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${user}`,
      `ALTER DEFAULT PRIVILEGES IN SCHEMA ${schema} GRANT SELECT ON TABLES TO ${user}`,
    ]);

const statements = (lines: readonly string[]): string => lines.map((line) => `${line};`).join('\n');
type Login = { username?: string; database?: string };
const quoted = ({ username = 'reader', database = 'postgres' }: Login) => ({
  user: identifier(username),
  name: identifier(database),
});

export function rightsToRead(settings: Login & { schemas?: string[]; replication?: string }): string {
  const { user, name } = quoted(settings);
  const log = [`ALTER ROLE ${user} REPLICATION`, `GRANT CREATE ON DATABASE ${name} TO ${user}`];
  return statements([
    `GRANT CONNECT ON DATABASE ${name} TO ${user}`,
    ...readingSchemas(user, settings.schemas ?? []),
    ...(settings.replication === 'logical' ? log : []),
  ]);
}

export function rightsToWrite(settings: Login & { schema?: string }): string {
  const { user, name } = quoted(settings);
  const schema = identifier(settings.schema ?? 'public');
  return statements([
    `GRANT CONNECT, CREATE, TEMPORARY ON DATABASE ${name} TO ${user}`,
    `CREATE SCHEMA IF NOT EXISTS ${schema}`,
    `GRANT USAGE, CREATE ON SCHEMA ${schema} TO ${user}`,
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
