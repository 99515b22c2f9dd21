import { afterEach, beforeEach } from 'bun:test';
import type { Batch, Writer, WriteTarget } from '../../server/connectors/define.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { column, destinationConfig, twoDatabases } from './postgres-support.ts';

export const COLUMNS = [column('id', 'integer'), column('name', 'string'), column('at', 'timestamp_tz')];

/** A destination with a table name of its own for each test, and writers that are closed after it. */
export function targetTables() {
  const sides = twoDatabases();
  let table = '';
  let count = 0;
  beforeEach(() => {
    table = `table_${++count}`;
  });

  const target = (more: Partial<WriteTarget> = {}): WriteTarget => ({
    schema: null,
    table,
    columns: COLUMNS,
    primary_key: ['id'],
    cursor_column: null,
    mode: 'append',
    connection_id: 'connection',
    stream_id: table,
    connection_run_id: 'run',
    stream_run_id: 'first',
    fence: 1,
    state_version: 0,
    ...more,
  });
  const writers: Writer[] = [];
  const open = async (more: Partial<WriteTarget> = {}) => {
    const writer = await postgresDestination.open(destinationConfig(sides.destination).ctx, target(more));
    writers.push(writer);
    return writer;
  };
  afterEach(async () => {
    for (const writer of writers.splice(0)) await writer.abort();
  });
  const row = (id: number, name: string | null, at: string | null = null) => [String(id), name, at];
  const load = async (more: Partial<WriteTarget>, ...batches: Batch[]) => {
    const writer = await open(more);
    try {
      for (const batch of batches) await writer.write(batch);
      return await writer.finish(null);
    } finally {
      await writer.abort();
    }
  };
  const content = async (order = 'id, name') =>
    (await sides.destination.sql.unsafe(`select id::int, name from "${table}" order by ${order}`)).map(
      ({ id, name }) => [id, name],
    );
  const exists = async (name = table) =>
    (await sides.destination.sql`select 1 from pg_class where relname = ${name}`).length > 0;
  const errorOf = (work: Promise<unknown>) =>
    work.then(
      () => null,
      (error: unknown) => error as Error & { code: string },
    );
  return { sides, target, open, row, load, content, exists, errorOf, tableName: () => table };
}
