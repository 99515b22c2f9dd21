import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Batch, Cell, RowChange, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { mysqlDatabase } from './mysql-support.ts';
import { mariaDbMissing } from '../support/mariadb.ts';
import { batchOf, column, targetOf, twoDatabases } from './postgres-support.ts';
import { duckDbPlace, mysqlPlace, postgresPlace, type RejectingPlace } from './rejects-places.ts';

const sides = twoDatabases();
const side = mysqlDatabase();
const PLACES = {
  postgres: { make: async () => postgresPlace(sides), skip: false },
  'mysql by LOAD DATA': { make: async () => mysqlPlace(side, true), skip: mariaDbMissing !== null },
  'mysql by INSERT': { make: async () => mysqlPlace(side, false), skip: mariaDbMissing !== null },
  duckdb: { make: duckDbPlace, skip: false },
};
const COLUMNS = [column('id', 'integer'), column('day', 'date'), column('note', 'string')];
let fence = 0;
let counter = 0;

const target = (table: string, more: Partial<WriteTarget> = {}): WriteTarget =>
  targetOf({ name: table, fields: [], source_defined_primary_key: null } as never, {
    table,
    columns: COLUMNS,
    rejects: { limit: 10 },
    stream_id: table,
    stream_run_id: `${table} run`,
    connection_run_id: `${table} run`,
    fence: ++fence,
    ...more,
  });
const rows = (count: number, bad: Record<number, Cell[]>): Cell[][] =>
  Array.from({ length: count }, (_, id) => [...(bad[id] ?? [String(id), '2026-01-31', `row ${id}`])]);

describe.each(Object.entries(PLACES))('rows that cannot be loaded: %s', (_name, { make, skip }) => {
  let place: RejectingPlace;
  const it = test.skipIf(skip);
  beforeAll(async () => {
    if (skip) return;
    place = await make();
    await place.before?.();
  });
  afterAll(async () => {
    if (!skip) await place.after?.();
  });

  async function load(wanted: WriteTarget, batches: Batch[]) {
    const { writer, warnings } = await place.open(wanted);
    try {
      for (const [index, batch] of batches.entries()) {
        await writer.write(batch);
        if (index < batches.length - 1) await writer.checkpoint({ cursor: String(index) });
      }
      return { counts: await writer.finish({ cursor: 'end' }), warnings };
    } finally {
      await writer.abort();
    }
  }
  const loadRows = (wanted: WriteTarget, ...batches: Cell[][][]) =>
    load(
      wanted,
      batches.map((batch) => batchOf(batch)),
    );
  const ids = async (table: string) =>
    (await place.values(`select id from ${table}`)).map(Number).toSorted((a, b) => a - b);
  const keptColumn = (table: string, name: string) =>
    place.values(`select ${name} from _rejected where table_name = '${table}' order by rejected_at`);
  const kept = async (table: string) =>
    (await keptColumn(table, place.rowAsText)).map((row) => JSON.parse(row) as Record<string, string | null>);

  it('are kept with reason and run, wherever they occur, and all others are loaded once', async () => {
    const bad: Record<number, Cell[]> = {
      0: ['x', null, 'first'],
      41: ['41', 'no day', 'in the "middle" \\u0000 \\'],
      42: ['42', '2026-02-30', 'beside it'],
      99: ['9e99', null, 'last'],
    };
    const table = `r${++counter}`;
    const { counts, warnings } = await loadRows(
      target(table),
      rows(100, bad),
      rows(3, { 1: ['', '2026-01-31', 'again'] }),
    );
    expect(counts).toMatchObject({ rows_loaded: 98, rows_rejected: 5 });
    expect(await ids(table)).toEqual(
      [...Array.from({ length: 100 }, (_none, id) => id).filter((id) => !(id in bad)), 0, 2].toSorted((a, b) => a - b),
    );
    const all = await kept(table);
    expect(all.map(({ note }) => note!).toSorted()).toEqual(
      ['again', 'beside it', 'first', 'in the "middle" \\u0000 \\', 'last'].toSorted(),
    );
    expect(all.find(({ id }) => id === '41')).toEqual({ id: '41', day: 'no day', note: 'in the "middle" \\u0000 \\' });
    expect(new Set(await keptColumn(table, 'connection_run_id'))).toEqual(new Set([`${table} run`]));
    const reasons = (await keptColumn(table, 'reason')).filter((reason) => reason.includes(place.words.date));
    expect(reasons.length).toBeGreaterThanOrEqual(1);
    for (const reason of reasons) {
      expect(reason).toContain('day');
      // Its position in the statement means nothing to users.
      expect(reason).not.toMatch(/row \d/);
    }
    expect(warnings).toContain('rows_rejected');
  });

  it('include values that the database could coerce', async () => {
    const table = `r${++counter}`;
    const wrong: Record<number, Cell[]> = { 1: ['1.5', null, 'part'], 2: ['12 apples', null, 'words'] };
    expect((await loadRows(target(table), rows(4, wrong))).counts).toMatchObject({ rows_loaded: 2, rows_rejected: 2 });
    expect(await ids(table)).toEqual([0, 3]);
    const shown = { schema: null, table, limit: 1, rejected_by: null };
    const loaded = await place.sample(shown);
    expect([loaded.columns, loaded.rows.length]).toEqual([['id', 'day', 'note'], 1]);
    const rejected = await place.sample({ ...shown, limit: 9, rejected_by: `${table} run` });
    expect(rejected.columns).toEqual(['reason', 'row', 'rejected_at']);
    expect(rejected.rows.map((row) => JSON.parse(row[1]!).note).toSorted()).toEqual(['part', 'words']);
    expect(place.sample({ ...shown, table: 'nothing' })).rejects.toMatchObject({ code: 'destination_table_missing' });
  });

  it('in a merge: a missing key, and a delete with an invalid key', async () => {
    const table = `r${++counter}`;
    const merged = { mode: 'append_dedup' as const, primary_key: ['id'] };
    const { counts } = await loadRows(target(table, merged), rows(5, { 2: [null, null, 'keyless'] }));
    expect(counts).toMatchObject({ rows_loaded: 4, rows_rejected: 1 });
    const changes: RowChange[] = [{ operation: 'delete' }, { operation: 'delete' }, { operation: 'upsert' }];
    const changed = [
      ['x', null, null],
      ['3', null, null],
      ['9', null, 'new'],
    ];
    const again = await load(target(table, { ...merged, stream_run_id: 'second' }), [{ ...batchOf(changed), changes }]);
    expect(again.counts).toMatchObject({ rows_loaded: 1, rows_deleted: 1, rows_rejected: 1 });
    expect(await ids(table)).toEqual([0, 1, 4, 9]);
  });

  it('in a complete read with soft_delete: rejected rows are not marked as deleted', async () => {
    const table = `r${++counter}`;
    const soft = { mode: 'soft_delete' as const, primary_key: ['id'], complete: true };
    await loadRows(target(table, soft), rows(4, {}));
    const again = target(table, { ...soft, stream_run_id: 'second' });
    const { counts } = await loadRows(again, [
      ['1', 'no day', 'misfit'],
      ['x', null, 'no key'],
      ['3', null, 'again'],
    ]);
    expect(counts).toMatchObject({ rows_loaded: 1, rows_deleted: 2, rows_rejected: 2 });
    expect(await ids(`${table} where _deleted_at is null`)).toEqual([1, 3]);
    const none = target(table, { ...soft, stream_run_id: 'third' });
    expect((await loadRows(none, [['1', 'no day', 'misfit']])).counts).toMatchObject({ rows_deleted: 1 });
    expect(await ids(`${table} where _deleted_at is null`)).toEqual([1]);
  });

  it('in an overwrite, and none of an abandoned one', async () => {
    const table = `r${++counter}`;
    await loadRows(target(table), rows(2, {}));
    const overwrite = (stream_run_id: string) => target(table, { mode: 'overwrite', stream_run_id });
    const { writer } = await place.open(overwrite('given up'));
    await writer.write(batchOf(rows(2, { 1: ['y', null, null] })));
    await writer.abort();
    expect(await kept(table)).toEqual([]);
    const { counts } = await loadRows(overwrite('second'), rows(5, { 2: ['x', null, null] }));
    expect(counts).toMatchObject({ rows_loaded: 4, rows_rejected: 1 });
    expect(await ids(table)).toEqual([0, 1, 3, 4]);
    expect(await kept(table)).toHaveLength(1);
  });

  it('because of a constraint of the table', async () => {
    const table = `r${++counter}`;
    await place.run(`create table ${table} (id bigint unique, day date, note varchar(100) check (note <> 'row 3'))`);
    const { counts } = await loadRows(target(table), rows(6, { 5: ['1', null, 'twice'] }));
    expect(counts).toMatchObject({ rows_loaded: 4, rows_rejected: 2 });
    expect(await ids(table)).toEqual([0, 1, 2, 4]);
    const reasons = await keptColumn(table, 'reason');
    expect(reasons.filter((reason) => reason.includes(place.words.rule)).length).toBeGreaterThanOrEqual(1);
    expect((await kept(table)).map(({ note }) => note).toSorted()).toEqual(['row 3', 'twice']);
  });

  it('above the limit fail the stream and roll back its last commit', async () => {
    const table = `r${++counter}`;
    const wanted = target(table, { rejects: { limit: 2 } });
    const three = { 1: ['x', null, null], 2: ['y', null, null], 3: ['z', null, null] };
    await expect(loadRows(wanted, rows(10, { 5: ['w', null, null] }), rows(10, three))).rejects.toMatchObject({
      code: 'too_many_rejected_rows',
      type: 'system_error',
      message: expect.stringContaining('More than 2 rows'),
    });
    expect(await ids(table)).toHaveLength(9);
    expect(await kept(table)).toHaveLength(1);
  });

  it('are counted across the attempts of a run', async () => {
    const table = `r${++counter}`;
    const { writer } = await place.open(target(table));
    await writer.write(batchOf(rows(3, { 1: ['x', null, null] })));
    await writer.checkpoint({ cursor: '2' });
    await writer.abort();
    const { counts } = await loadRows(target(table), rows(3, { 1: ['y', null, null] }));
    expect(counts).toMatchObject({ rows_loaded: 4, rows_rejected: 2 });
  });

  it('only rejected rows: the table is created, and empty', async () => {
    const table = `r${++counter}`;
    const { counts } = await loadRows(target(table), rows(2, { 0: ['x', null, null], 1: ['y', null, null] }));
    expect(counts).toMatchObject({ rows_loaded: 0, rows_rejected: 2 });
    expect(await ids(table)).toEqual([]);
  });

  it('are an error if rejects are not kept', async () => {
    const table = `r${++counter}`;
    const { writer } = await place.open(target(table, { rejects: null }));
    const work = async () => {
      await writer.write(batchOf(rows(3, { 1: ['x', null, null] })));
      return writer.finish(null);
    };
    await expect(work()).rejects.toMatchObject({
      type: 'system_error',
      code: expect.stringMatching(/^(invalid_value|value_does_not_fit)$/),
    });
    await writer.abort();
  });
});
