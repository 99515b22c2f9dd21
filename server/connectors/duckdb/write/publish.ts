import type { DuckDBConnection } from '@duckdb/node-api';
import { type PlacedGroup, readyTables, recordPublished } from '../../kits/sql/publish/ready.ts';
import { execute, sessionOf } from '../connection/engine.ts';
import type { Place } from '../connection/failures.ts';
import { identifier, relation } from '../connection/sql.ts';
import { duckdb } from './dialect.ts';
import { findTable } from './tables.ts';

/** In the open transaction: readers see the old tables until its commit, and the new ones from then on. */
export async function publishTables(connection: DuckDBConnection, place: Place, group: PlacedGroup): Promise<void> {
  const db = { session: sessionOf(connection, place), dialect: duckdb };
  const ready = await readyTables(db, group);
  if (ready === null) return;
  for (const { table, fresh } of ready) {
    const old = await findTable(connection, group.schema, table);
    if (old) await execute(connection, `DROP TABLE ${relation(group.schema, table)}`);
    await execute(connection, `ALTER TABLE ${relation(group.schema, fresh)} RENAME TO ${identifier(table)}`);
  }
  await recordPublished(db, group);
}
