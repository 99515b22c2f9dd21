import { describe, expect, test } from 'bun:test';
import { DELETE, UPSERT } from '../../server/connectors/contract/changes.ts';
import type { WriteTarget } from '../../server/connectors/contract/connector.ts';
import { DataError, FencedError } from '../../server/connectors/contract/errors.ts';
import type { StreamsFailed } from '../../server/connectors/contract/replication.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { until } from '../support/until.ts';
import { backends, batchOf, column, destinationConfig } from './postgres-support.ts';
import { targetTables } from './postgres-target-tables.ts';

const { sides, target, open, row, load, content, exists, errorOf } = targetTables();
describe('fencing', () => {
  test('an attempt with a lower fence can no longer commit', async () => {
    const old = await open();
    await old.write(batchOf([row(1, 'zombie')]));
    const young = await open({ fence: 2 });
    const error = await errorOf(old.finish({ cursor: '1' }));
    expect(error).toBeInstanceOf(FencedError);
    await old.abort();
    await young.write(batchOf([row(2, 'heir')]));
    await young.finish(null);
    expect(await content()).toEqual([[2, 'heir']]);
    expect(await errorOf(open())).toBeInstanceOf(FencedError);
  });

  test('a fenced overwrite leaves the table unchanged', async () => {
    await load({ mode: 'overwrite' }, batchOf([row(1, 'old')]));
    const zombie = await open({ mode: 'overwrite', fence: 2 });
    await zombie.write(batchOf([row(2, 'zombie')]));
    const heir = await open({ mode: 'overwrite', fence: 3 });
    expect(await errorOf(zombie.finish(null))).toBeInstanceOf(FencedError);
    await zombie.abort();
    await heir.abort();
    expect(await content()).toEqual([[1, 'old']]);
  });

  test('a finished stream run is reported as finished; a later run gets only a newer state', async () => {
    const writer = await open();
    await writer.finish({ cursor: '7' });
    const again = await open({ fence: 2 });
    expect(again.committed).toMatchObject({ finished: true, same_stream_run: true, state_version: 1 });
    await again.abort();
    const behind = await open({ fence: 3, stream_run_id: 'second', state_version: 0 });
    expect(behind.committed).toMatchObject({ state: { cursor: '7' }, same_stream_run: false, finished: false });
    await behind.abort();
    const level = await open({ fence: 4, stream_run_id: 'second', state_version: 1 });
    expect(level.committed).toBe(null);
    await level.abort();
  });

  test('a cursor changed in the control plane is not reverted', async () => {
    await (await open()).finish({ cursor: '7' });
    const moved = await open({ fence: 2, stream_run_id: 'second', state_version: 5 });
    await moved.finish(null);
    const next = await open({ fence: 3, stream_run_id: 'third', state_version: 0 });
    expect(next.committed).toMatchObject({ state: null, state_version: 5 });
    await next.abort();
  });
});

describe('a commit of several tables', () => {
  /** A row with a value of each kind that is written otherwise than it is sent, and one that is all null. */
  const TYPES: [type: string, value: string][] = [
    ['text', 'back\\slash "quotes" \'single\' {brace} tab\t line\n ä🐘'],
    ['character varying(5)', 'fives'],
    ['character(5)', 'ab'],
    ['numeric(10,2)', '1.5'],
    ['double precision', 'NaN'],
    ['boolean', 'true'],
    ['bytea', '\\x00ff5c'],
    ['timestamp(3) without time zone', '2026-01-31 23:59:59.123'],
    ['timestamp with time zone', 'infinity'],
    ['interval', 'P1Y2M3DT4H5M6.789S'],
    ['json', '{"b": 1,  "a": [1, null, "x"]}'],
    ['jsonb', '"text"'],
    ['text[]', '{"a,b",NULL,"c\\"d"}'],
    ['integer[]', '{{1,2},{3,4}}'],
    ['bit(3)', '101'],
    ['box', '(1,1),(0,0)'],
    ['int4range', '[1,5)'],
    ['uuid', '01a205ac-6094-705e-bb80-8ffd19d0773e'],
  ];

  async function openTogether(more: Partial<WriteTarget>[]) {
    const { ctx, entries } = destinationConfig(sides.destination);
    const targets = more.map((one) => ({ target: target({ mode: 'append_dedup', ...one }), warn() {} }));
    const writer = await postgresDestination.openReplication!(ctx, targets);
    return { writer, entries };
  }
  const tables = async (...names: string[]) => {
    for (const name of names)
      await sides.destination.sql.unsafe(`create table ${name} (id int primary key, name text)`);
    return names.map((table) => ({ table, stream_id: table, columns: TWO_COLUMNS }));
  };
  const TWO_COLUMNS = [column('id', 'integer'), column('name', 'string')];
  const at = (cursor: string) => ({ cursor });
  const rowsOf = async (table: string) =>
    (await sides.destination.sql.unsafe(`select * from ${table} order by id`)).map((found) => Object.values(found));

  test('is two messages to the server, however many tables have changes', async () => {
    const { writer, entries } = await openTogether(await tables('many_a', 'many_b', 'many_c'));
    for (const round of [1, 2]) {
      const before = entries.length;
      for (const [stream, changes] of [[UPSERT], [UPSERT], [DELETE]].entries())
        await writer.write(stream, { ...batchOf([['1', `round ${round}`]]), changes });
      const counts = await writer.commit([at(`${round}`), at(`${round}`), at(`${round}`)]);
      expect(counts.get(0)).toMatchObject({ rows_loaded: round, rows_updated: round - 1 });
      expect(entries.slice(before).map(({ body }) => body)).toEqual(['begin; merge 3 tables', 'update states; commit']);
    }
    await writer.abort();
    expect([await rowsOf('many_a'), await rowsOf('many_b'), await rowsOf('many_c')]).toEqual([
      [[1, 'round 2']],
      [[1, 'round 2']],
      [],
    ]);
  });

  test('stores values as COPY does', async () => {
    const { sql } = sides.destination;
    const columns = TYPES.map(([type], index) => ({
      ...column(`c${index}`, 'string'),
      source_type: type,
      dialect: 'postgres',
    }));
    const definition = `(id int primary key, ${TYPES.map(([type], index) => `c${index} ${type}`).join(', ')})`;
    for (const table of ['held', 'copied']) await sql.unsafe(`create table ${table} ${definition}`);
    const [held, copied] = ['held', 'copied'].map((table) => ({
      table,
      stream_id: table,
      mode: 'append_dedup' as const,
      columns: [column('id', 'integer'), ...columns],
    }));
    const rows = () => [
      ['1', ...TYPES.map(([, value]) => value)],
      ['2', ...TYPES.map(() => null)],
    ];
    const { writer, entries } = await openTogether([held!]);
    await writer.write(0, batchOf(rows()));
    await writer.commit([at('1')]);
    await writer.abort();
    expect(entries.some(({ method }) => method === 'COPY')).toBe(false);
    await load(copied!, batchOf(rows()));
    const [difference] = await sql`select count(*)::int as n from held join copied using (id)
      where record_image_ne(row(held.*), row(copied.*))`;
    expect(difference!.n).toBe(0);
    expect((await sql`select count(*)::int as n from held`)[0]!.n).toBe(2);
  });

  test('fails as a whole, for the table whose rows or fence it is', async () => {
    const [good, bad] = await tables('whole_good', 'whole_bad');
    await sides.destination.sql`alter table whole_bad add constraint no_b check (name <> 'b')`;
    const { writer } = await openTogether([good!, bad!]);
    const write = async (name: string) => {
      for (const stream of [0, 1]) await writer.write(stream, batchOf([['1', name]]));
      return errorOf(writer.commit([at(name), at(name)]));
    };
    expect(await write('a')).toBe(null);
    const refused = (await write('b')) as unknown as StreamsFailed;
    expect([...refused.failures.keys()]).toEqual([1]);
    expect(refused.failures.get(1)).toBeInstanceOf(DataError);
    await writer.abort();
    const next = await openTogether([good!, bad!]);
    const young = await openTogether([{ ...good!, fence: 2 }]);
    await next.writer.write(1, batchOf([['1', 'c']]));
    expect(await errorOf(next.writer.commit([at('c'), at('c')], true))).toMatchObject({
      failures: new Map([[0, expect.any(FencedError)]]),
    });
    await next.writer.abort();
    await young.writer.abort();
    expect([await rowsOf('whole_good'), await rowsOf('whole_bad')]).toEqual([[[1, 'a']], [[1, 'a']]]);
  });
});

describe('no partial work remains', () => {
  test('abort discards everything uncommitted and may be called twice', async () => {
    for (const mode of ['append', 'overwrite', 'append_dedup'] as const) {
      const writer = await open({ mode });
      await writer.write(batchOf([row(1, 'a')]));
      await writer.abort();
      await writer.abort();
    }
    await until(async () => (await backends(sides.destination)) === 0);
    expect(await exists()).toBe(false);
    const left = await sides.destination
      .sql`select relname from pg_class where relname like ${'%\\_\\_new%'} or relname like ${'stage%'}`;
    expect([...left]).toEqual([]);
  });

  test('a connection killed in the middle leaves the last checkpoint', async () => {
    const { sql, server } = sides.destination;
    const writer = await open();
    await writer.write(batchOf([row(1, 'a')]));
    await writer.checkpoint({ cursor: '1' });
    await writer.write(batchOf([row(2, 'b')]));
    await sql`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = ${server.database} and application_name = 'data-pipelines'`;
    const error = await errorOf(writer.finish({ cursor: '2' }));
    expect(error).toMatchObject({ type: 'transient_error', retryable: true });
    await writer.abort();
    expect(await content()).toEqual([[1, 'a']]);
    expect((await open({ fence: 2 })).committed).toMatchObject({ state: { cursor: '1' }, counts: { rows_loaded: 1 } });
  });

  test('an invalid value is reported with its position, and its transaction is rolled back', async () => {
    await load({}, batchOf([row(1, 'a')]));
    const error = await errorOf(load({ fence: 2 }, batchOf([row(2, 'b'), row(3, 'c'), ['four', 'secret text', null]])));
    expect(error).toBeInstanceOf(DataError);
    expect(error!.code).toBe('invalid_value');
    expect(error!.message).toContain('row 3, column id');
    expect(error!.message).not.toContain('secret text');
    expect(await content()).toEqual([[1, 'a']]);
  });

  test("an aborted signal ends a waiting write with the signal's reason", async () => {
    const { ctx, abort } = destinationConfig(sides.destination);
    const writer = await postgresDestination.open(ctx, target());
    await writer.write(batchOf([row(1, 'a')]));
    const reason = new Error('stop');
    abort.abort(reason);
    expect(await errorOf(writer.write(batchOf([row(2, 'b')])))).toBe(reason as never);
    await writer.abort();
    await until(async () => (await backends(sides.destination)) === 0);
    expect(await exists()).toBe(false);
  });
});
