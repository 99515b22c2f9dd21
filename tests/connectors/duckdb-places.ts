import { DuckDBInstance } from '@duckdb/node-api';
import { exists, mkdtemp, readdir, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROWS } from './reading.ts';
import type { Place } from './places.ts';

/**
 * Runs statements on a database file that is not open elsewhere in this process. Returns the rows of the last one as
 * text.
 */
export async function onDuckDb(path: string, ...statements: string[]): Promise<(string | null)[][]> {
  const instance = await DuckDBInstance.create(path);
  const connection = await instance.connect();
  try {
    await connection.run("SET TimeZone = 'UTC'");
    for (const statement of statements.slice(0, -1)) await connection.run(statement);
    const reader = await connection.runAndReadAll(statements.at(-1) ?? 'select 1');
    return reader.getRows().map((row) => row.map((value) => (value === null ? null : String(value))));
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

export async function duckDbFolder() {
  const filesRoot = await mkdtemp(join(tmpdir(), 'data-pipelines-duckdb-'));
  const leftOpen = async () => {
    const open = await readdir('/proc/self/fd');
    const links = await Promise.all(open.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')));
    return links.filter((path) => path.startsWith(filesRoot)).length;
  };
  await Bun.write(join(filesRoot, 'text.duckdb'), 'this is no database '.repeat(1000));
  const bad = { 'no database': { path: 'text.duckdb' }, 'outside the root': { path: '../x.duckdb' } };
  return { filesRoot, leftOpen, bad, close: () => rm(filesRoot, { recursive: true, force: true }) };
}

export async function duckDbSourcePlace(): Promise<Place> {
  const place = await duckDbFolder();
  await onDuckDb(
    join(place.filesRoot, 'many.duckdb'),
    `create table many as select i as id, nullif('Zoë ☃ ' || i, 'Zoë ☃ 7') as name, (i || '.12345')::decimal(30, 5) as amount,
       i * 10::hugeint ** 20 as huge, timestamptz '2026-01-01 00:00:00.123456+02' + i * interval 1 second as at, i / 3.0::double as ratio,
       timestamp_ns '2026-01-01 00:00:00.123456789' as nanos, date '2026-01-01' + (i % 300)::int as day, '\\xAA\\x00'::blob as bytes,
       [i, null] as list, {'i': i, 'text': 'x'} as nested, i % 2 = 0 as on_off, uuid() as key, time '12:00:00.5' as hour, 0.1::float as small
     from range(${ROWS}) t(i)`,
    'create schema "Other ""one"""',
    'create view "Other ""one""".some as select id, upper(name) as shout from many where id < 100',
  );
  return {
    ...place,
    good: { path: 'many.duckdb' },
    bad: {
      ...place.bad,
      'no such file': { path: 'none.duckdb' },
      'no such schema': { path: 'many.duckdb', schemas: ['x'] },
    },
  };
}

export async function duckDbDestinationPlace(): Promise<Place> {
  const place = await duckDbFolder();
  const path = join(place.filesRoot, 'out/target.duckdb');
  const readTable: Place['readTable'] = async (table, columns) => {
    if (!(await exists(path))) return null;
    const found = await onDuckDb(path, `select 1 from duckdb_tables() where table_name = '${table}'`);
    if (found.length === 0) return null;
    // DuckDB shows blobs in its own way.
    const list = columns.map(({ name, type }) =>
      type === 'binary' ? `'\\x' || lower(hex("${name}"))` : `"${name}"::varchar`,
    );
    return await onDuckDb(path, `select ${list.join(', ')} from "${table}"`);
  };
  return { ...place, good: { path: 'out/target.duckdb' }, readTable };
}
