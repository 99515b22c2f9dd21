import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import type { Writer, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import {
  backends,
  batchOf,
  column,
  destinationConfig,
  requestOf,
  sourceConfig,
  targetOf,
  twoDatabases,
} from './postgres-support.ts';
import { logServer } from '../support/postgres.ts';
import { errorOf } from './writing.ts';
import { truncated } from '../../server/connectors/contract/cells.ts';

const STATE = { cursor: '00000000/00000001' };
const sides = twoDatabases(logServer);
const run = (sql: string) => sides.destination.sql.unsafe(sql);
let table = '';
let count = 0;
const writers: Writer[] = [];

beforeEach(() => {
  table = `first_${++count}`;
});
afterEach(async () => {
  for (const writer of writers.splice(0)) await writer.abort();
});

async function opened(more: Partial<WriteTarget> = {}): Promise<{ writer: Writer; statements(): string[] }> {
  const { ctx, entries } = destinationConfig(sides.destination);
  const target: WriteTarget = {
    schema: null,
    table,
    columns: [column('id', 'integer'), column('note', 'string')],
    primary_key: ['id'],
    cursor_column: null,
    mode: 'append_dedup',
    connection_id: 'connection',
    stream_id: table,
    connection_run_id: 'run',
    stream_run_id: 'stream-run',
    fence: 1,
    state_version: 0,
    whole_table: true,
    ...more,
  };
  const writer = await postgresDestination.open(ctx, target);
  writers.push(writer);
  return { writer, statements: () => entries.map(({ url }) => url ?? '') };
}

const content = async (): Promise<unknown[]> => [...(await run(`select * from ${table} order by 1`))];
const keys = async () =>
  (
    await run(
      `select pg_get_constraintdef(oid) as key from pg_constraint where contype = 'p' and conrelid = '${table}'::regclass`,
    )
  ).map(({ key }) => key as string);

describe('a new table', () => {
  const optionsOf = async () =>
    (await run(`select reloptions from pg_class where oid = '${table}'::regclass`))[0]!.reloptions;

  test.each(['append_dedup', 'soft_delete'] as const)('has room for updated rows with %s', async (mode) => {
    const { writer } = await opened({ mode });
    await writer.finish(STATE);
    expect(await optionsOf()).toEqual(['fillfactor=90']);
  });

  test.each(['append', 'overwrite'] as const)('has no such room with %s', async (mode) => {
    const { writer } = await opened({ mode });
    await writer.finish(STATE);
    expect(await optionsOf()).toBeNull();
  });
});

describe('a whole table', () => {
  test('goes straight into a missing one, and the next commit merges into it', async () => {
    const { writer, statements } = await opened();
    await writer.write(truncated(2));
    await writer.write(
      batchOf([
        ['1', 'one'],
        ['2', 'two'],
      ]),
    );
    expect(await writer.checkpoint(STATE)).toMatchObject({ rows_loaded: 2, rows_updated: 0 });
    expect(statements().filter((text) => /stage|on conflict/i.test(text))).toEqual([]);
    expect(await keys()).toEqual(['PRIMARY KEY (id)']);
    await writer.abort();
    const next = await opened({ whole_table: false, fence: 2, stream_run_id: 'next', state_version: 1 });
    await next.writer.write({
      rows: [
        ['2', 'second'],
        ['3', 'three'],
      ],
      changes: [{ operation: 'upsert' }, { operation: 'upsert' }],
      bytes: 10,
    });
    await next.writer.finish(STATE);
    expect(await content()).toEqual([
      { id: '1', note: 'one' },
      { id: '2', note: 'second' },
      { id: '3', note: 'three' },
    ]);
  });

  test('with a key that occurs more than once leaves the last row of it', async () => {
    const { writer } = await opened();
    await writer.write(truncated(2));
    await writer.write(
      batchOf([
        ['1', 'old'],
        ['2', 'two'],
        ['1', 'new'],
      ]),
    );
    await writer.checkpoint(STATE);
    expect(await content()).toEqual([
      { id: '1', note: 'new' },
      { id: '2', note: 'two' },
    ]);
    expect(await keys()).toEqual(['PRIMARY KEY (id)']);
  });

  test('replaces the rows of a table that is there', async () => {
    await run(`create table ${table} (id bigint primary key, note text); insert into ${table} values (9, 'of before')`);
    const { writer } = await opened();
    await writer.write(truncated(2));
    await writer.write(batchOf([['1', 'one']]));
    expect((await content()).length).toBe(1);
    await writer.checkpoint(STATE);
    expect(await content()).toEqual([{ id: '1', note: 'one' }]);
  });

  test('without rows creates the table with its key', async () => {
    const { writer } = await opened();
    await writer.write(truncated(2));
    await writer.checkpoint(STATE);
    expect([await content(), await keys()]).toEqual([[], ['PRIMARY KEY (id)']]);
  });

  test('with a row without a key fails, and leaves no table', async () => {
    const { writer } = await opened();
    await writer.write(truncated(2));
    await writer.write(
      batchOf([
        ['1', 'one'],
        [null, 'none'],
      ]),
    );
    expect((await errorOf(writer.checkpoint(STATE)))?.code).toBe('null_value');
    await writer.abort();
    expect([...(await run(`select 1 from pg_class where relname like '${table}%'`))]).toEqual([]);
  });

  test('keeps rows that are rejected', async () => {
    const { writer } = await opened({ rejects: { limit: 10 } });
    await writer.write(truncated(2));
    await writer.write(
      batchOf([
        ['1', 'one'],
        ['x', 'no number'],
      ]),
    );
    expect(await writer.checkpoint(STATE)).toMatchObject({ rows_loaded: 1, rows_rejected: 1 });
    expect(await content()).toEqual([{ id: '1', note: 'one' }]);
  });
});

test.each(['pgcopy-binary', 'pgcopy-text'] as const)(
  'tables are copied as %s at the position where the log goes on',
  async (format) => {
    const { source } = sides;
    await source.sql.unsafe(`
      create table ${table} (id bigint primary key, note text, amount numeric);
      insert into ${table} select g, repeat('é' || chr(9), g % 50), g * 1.25 from generate_series(1, 3000) g`);
    const { ctx } = sourceConfig(source, { replication: 'logical' });
    const stream = (await postgresSource.discover(ctx)).find(({ name }) => name === table)!;
    const reader_id = crypto.randomUUID();
    const fields = stream.fields.map(({ path: [name] }) => name);
    expect(fields).toEqual(['id', 'note', 'amount', '_cdc_operation', '_cdc_committed_at', '_cdc_lsn']);
    const request = requestOf(stream, { sync_mode: 'incremental', reader_id });
    const copies = await postgresSource.replication!.copy(ctx, { reader_id, streams: [request] });
    try {
      await source.sql.unsafe(`insert into ${table} values (9000, 'later', 1)`);
      const to = destinationConfig(sides.destination);
      const target = targetOf(stream, { mode: 'append_dedup', whole_table: true });
      const writer = await postgresDestination.open(to.ctx, target);
      writers.push(writer);
      expect(copies.byteFormats!(0)).toContain(format);
      expect(writer.byteFormats).toContain(format);
      await writer.pipe!(copies.copy!(0, format));
      await writer.checkpoint(copies.state(0));
      const sum = `select count(*)::int n, max(id)::int top,
        md5(string_agg(row(id, note, amount)::text, '' order by id)) as rows from ${table} t`;
      const [there] = await source.sql.unsafe(`${sum} where id <> 9000`);
      expect((await run(sum))[0]).toEqual(there);
      const facts = 'select distinct _cdc_operation as operation, _cdc_committed_at as at, _cdc_lsn as lsn';
      const found = await run(`${facts} from ${table}`);
      expect(Array.from(found, ({ operation, at, lsn }) => [operation, at, lsn])).toEqual([['read', null, null]]);
      expect(there).toMatchObject({ n: 3000, top: 3000 });
    } finally {
      await copies.close();
      await postgresSource.release!(ctx, reader_id);
    }
    expect(await backends(source)).toBe(0);
  },
);
