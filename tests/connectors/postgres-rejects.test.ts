import { describe, expect, test } from 'bun:test';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import type { Cell, WriteTarget } from '../../server/connectors/define.ts';
import { batchOf, column, destinationConfig, targetOf, twoDatabases } from './postgres-support.ts';

const sides = twoDatabases();
const COLUMNS = [column('id', 'integer'), column('at', 'date'), column('note', 'string')];
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
  Array.from({ length: count }, (_, id) => bad[id] ?? [String(id), '2026-01-31', `row ${id}`]);

async function load(wanted: WriteTarget, batches: Cell[][][]) {
  const { ctx, warnings } = destinationConfig(sides.destination);
  const writer = await postgresDestination.open(ctx, wanted);
  try {
    for (const [index, batch] of batches.entries()) {
      await writer.write(batchOf(batch));
      if (index < batches.length - 1) await writer.checkpoint({ cursor: String(index) });
    }
    return { counts: await writer.finish({ cursor: 'end' }), warnings };
  } finally {
    await writer.abort();
  }
}
const rejected = (table: string) =>
  sides.destination
    .sql`select reason, "row", connection_run_id from _rejected where table_name = ${table} order by rejected_at, ("row" ->> 'note')`;
const ids = async (table: string) =>
  (await sides.destination.sql.unsafe(`select id from ${table} order by id`)).map(({ id }) => Number(id));

describe('rows that cannot be loaded', () => {
  test('are kept with reason and run, wherever they stand, and the others are loaded once', async () => {
    const bad: Record<number, Cell[]> = {
      0: ['x', null, 'first'],
      41: ['41', 'no day', 'in the middle'],
      42: ['42', '2026-02-30', 'beside it'],
      99: ['9e99', null, 'last\0'],
    };
    const table = `r${++counter}`;
    const { counts, warnings } = await load(target(table), [
      rows(100, bad),
      rows(3, { 1: ['', '2026-01-31', 'again'] }),
    ]);
    expect(counts).toMatchObject({ rows_loaded: 98, rows_rejected: 5 });
    expect(await ids(table)).toEqual(
      [...Array.from({ length: 100 }, (_, id) => id).filter((id) => !(id in bad)), 0, 2].toSorted((a, b) => a - b),
    );
    const kept = await rejected(table);
    expect(kept.map(({ row }) => row.note).toSorted()).toEqual(
      ['again', 'beside it', 'first', 'in the middle', 'last'].toSorted(),
    );
    const middle = kept.find(({ row }) => row.id === '41')!;
    expect(middle).toMatchObject({
      row: { id: '41', at: 'no day', note: 'in the middle' },
      connection_run_id: `${table} run`,
    });
    expect(middle.reason).toContain('invalid input syntax for type date');
    expect(middle.reason).toContain('column at');
    expect(warnings).toContain('rows_rejected');
  });

  test('by a merge as well: a key that is missing', async () => {
    const table = `r${++counter}`;
    const merged = target(table, { mode: 'append_dedup', primary_key: ['id'] });
    const { counts } = await load(merged, [rows(5, { 2: [null, null, 'keyless'] })]);
    expect(counts).toMatchObject({ rows_loaded: 4, rows_rejected: 1 });
    expect(await ids(table)).toEqual([0, 1, 3, 4]);
  });

  test('by an overwrite as well', async () => {
    const table = `r${++counter}`;
    await load(target(table), [rows(2, {})]);
    const { counts } = await load(target(table, { mode: 'overwrite', stream_run_id: 'second' }), [
      rows(5, { 2: ['x', null, null] }),
    ]);
    expect(counts).toMatchObject({ rows_loaded: 4, rows_rejected: 1 });
    expect(await ids(table)).toEqual([0, 1, 3, 4]);
  });

  test('by a rule of the table itself', async () => {
    const table = `r${++counter}`;
    await sides.destination.sql.unsafe(
      `create table ${table} (id bigint unique, at date, note text check (note <> 'row 3'))`,
    );
    const { counts } = await load(target(table), [rows(6, { 5: ['1', null, 'twice'] })]);
    expect(counts).toMatchObject({ rows_loaded: 4, rows_rejected: 2 });
    expect((await rejected(table)).map(({ reason }) => reason.includes('constraint'))).toEqual([true, true]);
  });

  test('beyond the limit fail the stream; nothing of its last commit stays', async () => {
    const table = `r${++counter}`;
    const wanted = target(table, { rejects: { limit: 2 } });
    const three = { 1: ['x', null, null], 2: ['y', null, null], 3: ['z', null, null] };
    await expect(load(wanted, [rows(10, { 5: ['w', null, null] }), rows(10, three)])).rejects.toMatchObject({
      code: 'too_many_rejected_rows',
      type: 'system_error',
      message: expect.stringContaining('More than 2 rows'),
    });
    expect(await ids(table)).toHaveLength(9);
    expect(await rejected(table)).toHaveLength(1);
  });

  test('count on over the attempts of a run', async () => {
    const table = `r${++counter}`;
    const { ctx } = destinationConfig(sides.destination);
    const first = await postgresDestination.open(ctx, target(table));
    await first.write(batchOf(rows(3, { 1: ['x', null, null] })));
    await first.checkpoint({ cursor: '2' });
    await first.abort();
    const { counts } = await load(target(table), [rows(3, { 1: ['y', null, null] })]);
    expect(counts).toMatchObject({ rows_loaded: 4, rows_rejected: 2 });
  });

  test('are an error where nobody asked for them to be kept', async () => {
    const table = `r${++counter}`;
    const writer = await postgresDestination.open(
      destinationConfig(sides.destination).ctx,
      target(table, { rejects: null }),
    );
    await writer.write(batchOf(rows(3, { 1: ['x', null, null] }))).catch(() => {});
    await expect(writer.finish(null)).rejects.toMatchObject({ code: 'invalid_value' });
    await writer.abort();
  });
});
