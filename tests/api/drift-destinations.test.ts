import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import postgres from 'postgres';
import { startWorker } from '../../server/worker/start-worker.ts';
import { onDuckDb } from '../connectors/duckdb-places.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { mariaDbMissing, testMariaDb } from '../support/mariadb.ts';
import { runEnded } from '../support/pipeline.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

// The machine may be busy with other tests.
setDefaultTimeout(120_000);

const service = await testDeps({ config: { RETRY_BACKOFF_SECONDS: 0 } });
const { call } = testApi(service);
const make = makerOf(call);
const worker = await startWorker(service.deps);
const database = await createPlainDatabase();
const sql = postgres(database.url, { max: 1, onnotice: () => {} });
afterAll(async () => {
  await worker.stop();
  await sql.end();
  await database.drop();
});

interface Place {
  connector: string;
  parameters: object;
  schema: string | null;
  /** Rows of the table, and its column types by name. */
  rows(columns: string, table: string): Promise<unknown[][]>;
  types(table: string): Promise<Record<string, string>>;
}
const named = (rows: unknown[][]) => Object.fromEntries(rows.map(([name, type]) => [String(name), String(type)]));

const PLACES: Record<string, (schema: string) => Promise<Place>> = {
  async postgres(schema) {
    const query = async (text: string) => (await sql.unsafe(text)).map((row) => Object.values(row));
    return {
      connector: 'postgres',
      parameters: postgresParameters(database.url),
      schema,
      rows: (columns, table) => query(`select ${columns} from ${schema}.${table} order by id`),
      types: async (table) =>
        named(
          await query(`select attname, format_type(atttypid, atttypmod) from pg_attribute
            where attrelid = '${schema}.${table}'::regclass and attnum > 0 and not attisdropped`),
        ),
    };
  },
  async mysql() {
    const server = await testMariaDb();
    const name = await server.database();
    const { host, port, username, password } = server;
    const query = async (text: string) => (await server.sql(text, name)).map((row) => Object.values(row));
    return {
      connector: 'mysql',
      parameters: { host, port, username, password, database: name, ssl_mode: 'disable' },
      schema: null,
      rows: (columns, table) => query(`select ${columns} from ${table} order by id`),
      types: async (table) =>
        named(
          await query(
            `select column_name, column_type from information_schema.columns where table_schema = '${name}' and table_name = '${table}'`,
          ),
        ),
    };
  },
  async duckdb(schema) {
    const path = `${schema}_file.duckdb`;
    const query = (text: string) => onDuckDb(join(service.deps.config.DATA_DIR, 'files', path), text);
    return {
      connector: 'duckdb',
      parameters: { path },
      schema,
      rows: (columns, table) => query(`select ${columns} from ${schema}.${table} order by id`),
      types: async (table) =>
        named(await query(`select column_name, data_type from duckdb_columns() where table_name = '${table}'`)),
    };
  },
};
const WIDE: Record<string, Record<string, string>> = {
  postgres: {
    total: 'bigint',
    share: 'double precision',
    day: 'timestamp without time zone',
    code: 'text',
    extra: 'integer',
  },
  mysql: { total: 'bigint(20)', share: 'double', day: 'datetime(6)', code: 'longtext', extra: 'bigint(20)' },
  duckdb: { total: 'BIGINT', share: 'DOUBLE', day: 'TIMESTAMP', code: 'VARCHAR', extra: 'BIGINT' },
};

let counter = 0;
describe.each(Object.keys(PLACES).filter((kind) => kind !== 'mysql' || !mariaDbMissing))('into %s', (kind) => {
  test.each(['append', 'append_dedup'])('by %s: columns are added and widened in place', async (mode) => {
    const name = `wide_${++counter}`;
    await sql.unsafe(`create schema ${name};
      create table ${name}.orders (id int primary key, total int, share real, day date, code int, at timestamptz not null);
      insert into ${name}.orders values (1, 10, 0.5, '2026-01-31', 7, '2026-01-01'), (2, 20, 0.25, null, null, '2026-01-02')`);
    const place = await PLACES[kind]!(`${name}_copy`);
    const source = await make.connector('source', 'postgres', { ...postgresParameters(database.url), schemas: [name] });
    const ready = async () =>
      (await call('GET', `/account_connectors/source/${source.id}`)).body.catalog_status === 'ready';
    await until(ready, { timeout_ms: 60_000 });
    const { id: destination_id } = await make.connector('destination', place.connector, place.parameters);
    const stream = { name: 'orders', sync_mode: 'incremental', cursor_field: ['at'], destination_sync_mode: mode };
    const connection = await make.connection({
      source_id: source.id,
      destination_id,
      streams: [stream],
      ...(place.schema && { destination_schema: place.schema }),
    });
    const run = async () => {
      const started = await call('POST', `/connections/${connection.id}/run`);
      const { status, error } = await runEnded(service, started.body, 60_000);
      expect([status, error]).toEqual(['succeeded', null]);
    };
    await run();
    await sql.unsafe(`alter table ${name}.orders alter column total type bigint, alter column share type double precision,
        alter column day type timestamp, alter column code type text, add column extra int;
      insert into ${name}.orders values (3, 5000000000, 0.1, '2026-02-01 12:00:00', 'x-1', '2026-01-03', 8)`);
    await run();
    const { total, share, day, code, extra } = await place.types('orders');
    expect({ total, share, day, code, extra }).toEqual(WIDE[kind] as never);
    const texts = (await place.rows('id, total, share, code, extra', 'orders')).map((row) =>
      row.map((value) => (value === null ? null : `${value as string | number}`)),
    );
    expect(texts).toEqual([
      ['1', '10', '0.5', '7', null],
      ['2', '20', '0.25', null, null],
      ['3', '5000000000', '0.1', 'x-1', '8'],
    ]);
  });
});
