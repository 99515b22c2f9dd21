import { describe, expect, test } from 'bun:test';
import { Database } from 'bun:sqlite';
import { join } from 'node:path';
import type {
  AnySource,
  Cell,
  ConnectorContext,
  Masking,
  StreamState,
} from '../../server/connectors/contract/connector.ts';
import { duckDbSource } from '../../server/connectors/duckdb/source.ts';
import { mysqlSource } from '../../server/connectors/mysql/source.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { sqliteSource } from '../../server/connectors/sqlite/source.ts';
import { mariaDbMissing } from '../support/mariadb.ts';
import { temporaryFolder } from '../support/postgres.ts';
import { onDuckDb } from './duckdb-places.ts';
import { mysqlDatabase, sourceConfig as mysqlConfig } from './mysql-support.ts';
import { contextOf, sourceConfig as postgresConfig, twoDatabases } from './postgres-support.ts';
import { readBatches, requestOf } from './reading.ts';

/*
 * Every row that a source commits arrives once, in any order of commits and after any change of the settings
 * of the stream between two reads.
 */

const pg = twoDatabases();
const maria = mysqlDatabase();
const filesRoot = temporaryFolder();

interface Read {
  rows: Cell[][];
  state: StreamState | null;
  warnings: string[];
}
interface Place {
  name: string;
  skip?: boolean;
  source: AnySource;
  /** A context that collects warnings. */
  open(): { ctx: ConnectorContext<unknown>; warnings: string[] };
  run(...statements: string[]): Promise<unknown>;
}
const files = (name: string, source: AnySource) => {
  const from = contextOf(source.config.parse({ path: name }));
  return { ctx: { ...from.ctx, filesRoot } as ConnectorContext<unknown>, warnings: from.warnings };
};
const PLACES: Place[] = [
  {
    name: 'postgres',
    source: postgresSource,
    open: () => postgresConfig(pg.source),
    run: (...statements) => pg.source.sql.unsafe(statements.join(';')),
  },
  {
    name: 'mysql',
    skip: mariaDbMissing !== null,
    source: mysqlSource,
    open: () => mysqlConfig(maria),
    run: (...statements) => maria.sql(statements.join(';')),
  },
  {
    name: 'sqlite',
    source: sqliteSource,
    open: () => files('things.db', sqliteSource),
    run: async (...statements) => {
      const database = new Database(join(filesRoot, 'things.db'), { create: true });
      for (const statement of statements) database.run(statement);
      database.close();
    },
  },
  {
    name: 'duckdb',
    source: duckDbSource,
    open: () => files('things.duckdb', duckDbSource),
    run: (...statements) => onDuckDb(join(filesRoot, 'things.duckdb'), ...statements),
  },
];
const AVAILABLE = PLACES.filter(({ skip }) => !skip);

type Columns = Record<string, Masking>;
interface Wanted {
  table: string;
  cursor: string;
  state?: StreamState | null;
  columns?: Columns;
}

async function read({ source, open }: Place, { table, cursor, state = null, columns }: Wanted): Promise<Read> {
  const { ctx, warnings } = open();
  const stream = (await source.discover(ctx)).find(({ name }) => name === table)!;
  const request = requestOf(stream, { sync_mode: 'incremental', cursor_field: [cursor], state });
  const selected = request.columns.flatMap(({ field }) => {
    const masking = columns ? columns[field.path[0]!] : 'none';
    return masking ? [{ field, masking }] : [];
  });
  const batches = await readBatches(source, ctx, { ...request, columns: selected });
  const last = batches.findLast((batch) => batch.state)?.state ?? state;
  const stored = JSON.parse(JSON.stringify(last)) as StreamState | null;
  return { rows: batches.flatMap(({ rows }) => rows), state: stored, warnings };
}
const ids = ({ rows }: Read) => rows.map(([id]) => Number(id)).toSorted((a, b) => a - b);

describe.each(AVAILABLE)('$name: rows at the last cursor', (place) => {
  const { run, source } = place;
  const id: Columns = { id: 'none' };
  const all: Columns = { ...id, name: 'none', secret: 'none', pos: 'none' };
  const masks: Columns[] = source.pushdown.masking.includes('redact')
    ? [
        { ...all, secret: 'redact' },
        { id: 'hash_sha256', secret: 'none' },
      ]
    : [];
  const CHANGES: [string, Columns, Columns][] = [
    ['deselected', all, { ...id, name: 'none', pos: 'none' }],
    ['selected', { ...id, pos: 'none' }, all],
    ['with the cursor alone', all, { ...id }],
    ...masks.flatMap((masked): [string, Columns, Columns][] => [
      ['masked', all, masked],
      ['shown', masked, all],
    ]),
  ];
  test.each(['primary key', ''])('stay loaded after a field was deselected, selected or masked (%s)', async (key) => {
    const table = key ? 'keyed' : 'bare';
    await run(
      `create table ${table} (id int ${key}, name varchar(20), secret varchar(20), pos int)`,
      `insert into ${table} values (1, 'a', 'x', 1), (2, 'b', 'x', 5), (3, 'c', 'x', 5)`,
    );
    for (const [what, before, after] of CHANGES) {
      const first = await read(place, { table, cursor: 'pos', columns: before });
      expect(first.rows.length).toBe(3);
      const second = await read(place, { table, cursor: 'pos', columns: after, state: first.state });
      expect([what, second.rows]).toEqual([what, []]);
    }
    const first = await read(place, { table, cursor: 'pos' });
    await run(`insert into ${table} values (4, 'd', 'x', 5)`, `alter table ${table} drop column secret`);
    expect(ids(await read(place, { table, cursor: 'pos', state: first.state }))).toEqual([4]);
  });

  test.each(['primary key', ''])('come again if they changed, whatever became of the columns (%s)', async (key) => {
    const table = key ? 'changed_keyed' : 'changed_bare';
    await run(
      `create table ${table} (id int ${key}, price decimal(8, 2), pos int)`,
      `insert into ${table} values (1, 1.5, 5), (2, 2.5, 5)`,
    );
    const { state } = await read(place, { table, cursor: 'pos' });
    await run(`update ${table} set price = 9 where id = 1`, `alter table ${table} add column extra int`);
    expect(ids(await read(place, { table, cursor: 'pos', state }))).toEqual([1]);
    const wider = place.name === 'mysql' ? 'modify column price' : 'alter column price type';
    if (place.name === 'sqlite') return;
    await run(`update ${table} set price = 1.5 where id = 1`, `alter table ${table} ${wider} decimal(10, 4)`);
    expect(ids(await read(place, { table, cursor: 'pos', state }))).toEqual([]);
  });
});

test('of many rows with the last cursor, the state keeps the key of each, and the cells of a thousand', async () => {
  const place = AVAILABLE.find(({ name }) => name === 'sqlite')!;
  const insert = (from: number, to: number) =>
    `insert into tied with recursive s(n) as (select ${from} union all select n + 1 from s where n < ${to})
     select n, 'name ' || n, 5 from s`;
  await place.run('create table tied (id int primary key, name text, pos int)', insert(1, 1_200));
  const { state } = await read(place, { table: 'tied', cursor: 'pos' });
  const parts = (state!.boundary as string[]).map((entry) => entry.split('.').length);
  expect([parts.filter((n) => n === 3).length, parts.filter((n) => n === 2).length]).toEqual([1_000, 200]);
  await place.run(insert(1_201, 1_201));
  expect(ids(await read(place, { table: 'tied', cursor: 'pos', state }))).toEqual([1_201]);
});

const UNPLACED: [place: string, type: string, value: string][] = [
  ['postgres', 'timestamptz', "'infinity'"],
  ['postgres', 'date', "'infinity'"],
  ['postgres', 'numeric', "'NaN'"],
  ['postgres', 'float8', "'Infinity'"],
  ['duckdb', 'timestamp', "'infinity'"],
  ['duckdb', 'double', "'nan'"],
  ['sqlite', 'double', '9e999'],
];
test.each(UNPLACED)('%s: %s %s is loaded once and never the bound', async (name, type, value) => {
  const place = AVAILABLE.find((one) => one.name === name)!;
  const [low, high] = /int|double|float|numeric/.test(type) ? ['1', '2'] : ["'2026-01-01'", "'2026-01-02'"];
  const table = `unplaced_${type}`;
  await place.run(`create table ${table} (id int, pos ${type})`, `insert into ${table} values (9, ${value})`);
  const none = await read(place, { table, cursor: 'pos' });
  expect([ids(none), none.state?.cursor]).toEqual([[9], null]);
  await place.run(`insert into ${table} values (1, ${low})`);
  const first = await read(place, { table, cursor: 'pos', state: none.state });
  expect(ids(first)).toEqual([1]);
  await place.run(`insert into ${table} values (2, ${high}), (8, ${value})`);
  const second = await read(place, { table, cursor: 'pos', state: first.state });
  expect(ids(second)).toEqual([2, 8]);
  expect(ids(await read(place, { table, cursor: 'pos', state: second.state }))).toEqual([]);
});

/** A session of its own, with a transaction that stays open. */
interface Writer {
  run(statement: string): Promise<unknown>;
  close(): Promise<unknown>;
}
const WRITERS: Record<string, () => Promise<Writer>> = {
  postgres: async () => {
    const session = await pg.source.sql.reserve();
    return { run: (statement) => session.unsafe(statement), close: async () => session.release() };
  },
  mysql: async () => maria.server.session(maria.database),
};
const KINDS = AVAILABLE.flatMap((place) =>
  place.name in WRITERS
    ? [
        { place, name: place.name, cursor: 'id', at: 'now()' },
        { place, name: place.name, cursor: 'at', at: 'now()' },
      ]
    : [],
);

describe.each(KINDS)('$name by $cursor: transactions in flight', ({ place, name, cursor, at }) => {
  const moment = name === 'postgres' ? 'timestamptz' : 'timestamp(6)';
  const now = name === 'postgres' ? at : 'now(6)';
  const table = `events_${cursor}`;
  const insert = (id: number) => `insert into ${table} values (${id}, ${now})`;

  /** Always ends the transaction: an open one would delay the end of the tests. */
  async function whileWriting(work: (writer: Writer) => Promise<void>): Promise<void> {
    const writer = await WRITERS[name]!();
    await writer.run('begin');
    try {
      await work(writer);
    } finally {
      await writer.run('rollback');
      await writer.close();
    }
  }

  test('a row that is committed after a later one arrives, and no row twice', async () => {
    await place.run(`create table ${table} (id int primary key, at ${moment} null)`, insert(1));
    await whileWriting(async (writer) => {
      await writer.run(insert(2));
      await place.run(insert(3));
      const first = await read(place, { table, cursor });
      expect(ids(first)).toEqual([1, 3]);
      const second = await read(place, { table, cursor, state: first.state });
      expect(ids(second)).toEqual([]);
      await place.run(insert(4));
      await writer.run('commit');
      const third = await read(place, { table, cursor, state: second.state });
      expect(ids(third)).toEqual([2, 4]);
      const fourth = await read(place, { table, cursor, state: third.state });
      expect(ids(fourth)).toEqual([]);
      // No transaction is open any more, so the state keeps only what it needs.
      expect(fourth.state!.pending).toBeUndefined();
    });
  });

  test('a long transaction holds back what exceeds the limit, which is reported, and it arrives later', async () => {
    const many = name === 'postgres' ? 'generate_series(10, 20009) g' : 'seq_10_to_20009 s';
    const column = name === 'postgres' ? 'g' : 's.seq';
    const start = await read(place, { table, cursor });
    await whileWriting(async (writer) => {
      await writer.run(insert(5));
      await place.run(`insert into ${table} select ${column}, ${now} from ${many}`);
      const held = await read(place, { table, cursor, state: start.state });
      expect(held.warnings).toEqual(['cursor_held_back']);
      expect(held.rows.length).toBeGreaterThan(5_000);
      expect(held.rows.length).toBeLessThan(10_001);
      const still = await read(place, { table, cursor, state: held.state });
      expect([still.rows.length, still.warnings]).toEqual([0, ['cursor_held_back']]);
      await writer.run('commit');
      const rest = await read(place, { table, cursor, state: still.state });
      expect(rest.warnings).toEqual([]);
      expect(held.rows.length + rest.rows.length).toBe(20_001);
      expect(ids(rest)[0]).toBe(5);
    });
  });
});
