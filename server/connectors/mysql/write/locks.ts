import type { MysqlSession } from '../connection/session.ts';
import { literal } from '../connection/sql.ts';

/** Streams open in parallel: one at a time may define tables of a database. It outlasts the commits of definitions. */
export async function lockDefinitions<Result>(
  session: MysqlSession,
  schema: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const name = `concat('data-pipelines:', left(sha2(${literal(schema)}, 256), 40))`;
  await session.query(`select get_lock(${name}, 600)`, { slow: true });
  const result = await work();
  // After an error the session is closed, which releases the lock as well.
  await session.query(`select release_lock(${name})`);
  return result;
}
