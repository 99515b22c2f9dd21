import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Batch, Cell, RowChange, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { mariaDbMissing } from '../support/mariadb.ts';
import { mysqlDatabase } from './mysql-support.ts';
import { batchOf, column, targetOf, twoDatabases } from './postgres-support.ts';
import { mysqlPlace, postgresPlace, type RejectingPlace } from './rejects-places.ts';

const sides = twoDatabases();
const side = mysqlDatabase();
/** How each database raises an error for the note `refused` in a trigger. */
const TRIGGERS: Record<string, (table: string) => string[]> = {
  postgres: (table) => [
    `create function refuse_${table}() returns trigger language plpgsql as
       $$ begin if new.note = 'refused' then raise exception 'not this one'; end if; return new; end $$`,
    `create trigger refuse before insert or update on ${table} for each row execute function refuse_${table}()`,
  ],
  mysql: (table) => [
    `create trigger refuse_${table} before insert on ${table} for each row
       if new.note = 'refused' then signal sqlstate '45000' set message_text = 'not this one'; end if`,
  ],
};
const PLACES = {
  postgres: { make: async () => postgresPlace(sides), skip: false },
  mysql: { make: async () => mysqlPlace(side, true), skip: mariaDbMissing !== null },
};
const COLUMNS = [column('id', 'integer'), column('parent', 'integer'), column('note', 'string')];
let fence = 0;
let counter = 0;

const target = (table: string, more: Partial<WriteTarget> = {}): WriteTarget =>
  targetOf({ name: table, fields: [], source_defined_primary_key: null } as never, {
    table,
    columns: COLUMNS,
    mode: 'append_dedup',
    primary_key: ['id'],
    rejects: { limit: 10 },
    stream_id: table,
    stream_run_id: `${table} run ${fence}`,
    fence: ++fence,
    ...more,
  });
const upserts = (rows: Cell[][]): Batch => batchOf(rows);
const changed = (list: [RowChange, Cell[]][]): Batch => ({
  ...batchOf(list.map(([, row]) => row)),
  changes: list.map(([change]) => change),
});
const UPSERT: RowChange = { operation: 'upsert' };
const DELETE: RowChange = { operation: 'delete' };

describe.each(Object.entries(PLACES))('rows rejected by the merge: %s', (name, { make, skip }) => {
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

  async function load(wanted: WriteTarget, ...batches: Batch[]) {
    const { writer } = await place.open(wanted);
    try {
      for (const batch of batches) await writer.write(batch);
      return await writer.finish({ cursor: 'end' });
    } finally {
      await writer.abort();
    }
  }
  /** An empty table with the given constraints. */
  async function tableWith(rules: string): Promise<string> {
    const table = `m${++counter}`;
    await place.run(`create table ${table} (id bigint primary key, parent bigint, note varchar(100)${rules})`);
    return table;
  }
  const content = async (table: string, more = '') =>
    place.values(`select concat(id, ' ', coalesce(note, '-')) from ${table} ${more} order by id`);
  const kept = async (table: string) => {
    const column_of = (what: string) =>
      place.values(`select ${what} from _rejected where table_name = '${table}' order by rejected_at, reason`);
    const rows = (await column_of(place.rowAsText)).map((row) => JSON.parse(row) as Record<string, string | null>);
    const reasons = await column_of('reason');
    return rows.map((row, index) => ({ row, reason: reasons[index]! }));
  };
  const many = (bad: Record<number, Cell[]>, count = 1000) =>
    upserts(Array.from({ length: count }, (_, id) => bad[id] ?? [String(id), null, `row ${id}`]));

  it('violating a CHECK, NOT NULL or a trigger: all others are merged once', async () => {
    const table = await tableWith(` not null, check (note <> 'row 7')`);
    for (const statement of TRIGGERS[name]!(table)) await place.run(statement);
    const counts = await load(target(table), many({ 0: ['0', '5', null], 999: ['999', null, 'refused'] }));
    expect(counts).toMatchObject({ rows_loaded: 997, rows_updated: 0, rows_rejected: 3 });
    const expected = Array.from({ length: 1000 }, (_, id) => `${id} row ${id}`);
    expect(await content(table)).toEqual(expected.filter((_, id) => ![0, 7, 999].includes(id)));
    const rejected = await kept(table);
    expect(rejected.map(({ row }) => row).toSorted((a, b) => Number(a.id) - Number(b.id))).toEqual([
      { id: '0', parent: '5', note: null },
      { id: '7', parent: null, note: 'row 7' },
      { id: '999', parent: null, note: 'refused' },
    ]);
    const reasonOf = (id: string) => rejected.find(({ row }) => row.id === id)!.reason;
    expect(reasonOf('0')).toMatch(/null/);
    expect(reasonOf('7')).toMatch(/constraint/i);
    expect(reasonOf('999')).toContain('not this one');
    // The rejected rows arrive again, corrected.
    const again = await load(
      target(table),
      upserts([
        ['7', null, 'mended'],
        ['1', null, 'row 1'],
      ]),
    );
    expect(again).toMatchObject({ rows_loaded: 2, rows_rejected: 0 });
    expect((await content(table)).includes('7 mended')).toBe(true);
  });

  it('violating a foreign key; rows that arrive with their parents, in any order or circular, are accepted', async () => {
    const table = await tableWith('');
    await place.run(
      `alter table ${table} add constraint ${table}_parent foreign key (parent) references ${table} (id)`,
    );
    const rows: Cell[][] = [
      ...Array.from({ length: 50 }, (_, id) => [String(id), String(id + 1), 'child before parent']),
      ['50', null, 'root'],
      ['60', '61', 'circle'],
      ['61', '60', 'circle'],
      ['70', '99', 'orphan'],
      ['71', '70', 'child of the orphan'],
    ];
    const circle = name === 'postgres' ? 2 : 0;
    const counts = await load(target(table), upserts(rows));
    expect(counts).toMatchObject({ rows_loaded: 51 + circle, rows_rejected: 4 - circle });
    expect((await content(table)).length).toBe(51 + circle);
    const reasons = new Set((await kept(table)).map(({ reason }) => reason.includes(`${table}_parent`)));
    expect(reasons).toEqual(new Set([true]));
  });

  if (name === 'postgres') {
    it('violating another unique index; the first row stays', async () => {
      const table = await tableWith('');
      await place.run(`create unique index ${table}_note on ${table} (note)`);
      await load(
        target(table),
        upserts([
          ['1', null, 'a'],
          ['2', null, 'b'],
        ]),
      );
      const rows = [
        ['9', null, 'new'],
        ['3', null, 'new'],
        ['4', null, 'b'],
        // Takes the value that the next row releases.
        ['1', null, 'b'],
        ['2', null, 'c'],
        ['5', null, 'e'],
      ];
      const counts = await load(target(table), upserts(rows));
      expect(counts).toMatchObject({ rows_rejected: 2, rows_loaded: 4 });
      expect(await content(table)).toEqual(['1 b', '2 c', '5 e', '9 new']);
    });

    it('violating a deferred foreign key', async () => {
      const table = await tableWith('');
      await place.run(
        `alter table ${table} add foreign key (parent) references ${table} (id) deferrable initially deferred`,
      );
      const rows = [
        ['1', '2', 'child'],
        ['2', null, 'parent'],
        ['3', '99', 'orphan'],
      ];
      expect(await load(target(table), upserts(rows))).toMatchObject({ rows_loaded: 2, rows_rejected: 1 });
      expect(await content(table)).toEqual(['1 child', '2 parent']);
    });
  }

  it('in update mode', async () => {
    const table = await tableWith(` check (note <> 'bad')`);
    await place.run(`insert into ${table} values (1, null, 'one'), (2, null, 'two'), (3, null, 'three')`);
    const rows = [
      ['1', null, 'uno'],
      ['2', null, 'bad'],
      ['3', null, 'tres'],
      ['4', null, 'bad'],
    ];
    const counts = await load(target(table, { mode: 'update' }), upserts(rows));
    expect(counts).toMatchObject({ rows_loaded: 3, rows_updated: 2, rows_rejected: 1 });
    expect(await content(table)).toEqual(['1 uno', '2 two', '3 tres']);
  });

  it('with soft_delete after a complete read: a rejected row is not marked as deleted', async () => {
    const table = await tableWith(` check (note <> 'bad')`);
    const soft = { mode: 'soft_delete' as const, complete: true };
    await load(
      target(table, soft),
      upserts([
        ['1', null, 'one'],
        ['2', null, 'two'],
        ['3', null, 'three'],
      ]),
    );
    const counts = await load(
      target(table, soft),
      upserts([
        ['1', null, 'bad'],
        ['2', null, 'two again'],
      ]),
    );
    expect(counts).toMatchObject({ rows_loaded: 1, rows_updated: 1, rows_deleted: 1, rows_rejected: 1 });
    expect(await content(table, 'where _deleted_at is null')).toEqual(['1 one', '2 two again']);
    expect(await content(table, 'where _deleted_at is not null')).toEqual(['3 three']);
  });

  it('with soft_delete after a complete read: a row with an invalid value is not marked as deleted', async () => {
    const table = await tableWith('');
    const soft = { mode: 'soft_delete' as const, complete: true };
    await load(target(table, soft), upserts([0, 1, 2, 3].map((id) => [String(id), null, 'first'])));
    const rows = [
      ['1', 'no number', 'misfit'],
      ['x', null, 'no key'],
      ['3', null, 'again'],
    ];
    const counts = await load(target(table, soft), upserts(rows));
    expect(counts).toMatchObject({ rows_loaded: 1, rows_updated: 1, rows_deleted: 2, rows_rejected: 2 });
    expect(await content(table, 'where _deleted_at is null')).toEqual(['1 first', '3 again']);
  });

  it('from changes: each rejected change is kept, others with its key are applied in order', async () => {
    const table = await tableWith(` check (note <> 'bad')`);
    const child = `${table}_child`;
    await place.run(`create table ${child} (id bigint, foreign key (id) references ${table} (id))`);
    await load(
      target(table),
      upserts([
        ['1', null, 'one'],
        ['2', null, 'two'],
        ['3', null, 'three'],
      ]),
    );
    await place.run(`insert into ${child} values (1)`);
    const counts = await load(
      target(table),
      changed([
        [DELETE, ['1', null, null]],
        [UPSERT, ['2', '5', 'bad']],
        [DELETE, ['3', null, null]],
        [UPSERT, ['4', null, 'four']],
      ]),
      changed([
        [{ operation: 'upsert', unchanged: [2] }, ['2', '6', null]],
        [UPSERT, ['5', null, 'bad']],
      ]),
    );
    expect(counts).toMatchObject({ rows_loaded: 2, rows_updated: 1, rows_deleted: 1, rows_rejected: 3 });
    expect(await content(table)).toEqual(['1 one', '2 two', '4 four']);
    expect(await place.values(`select parent from ${table} where id = 2`)).toEqual(['6']);
    const rejected = await kept(table);
    expect(rejected.find(({ row }) => row.id === '1')!.reason).toMatch(/^it was to be deleted: .*foreign key/);
    expect(rejected.map(({ row }) => row.id).toSorted()).toEqual(['1', '2', '5']);
  });

  it('after a truncate', async () => {
    const table = await tableWith(` check (note <> 'bad')`);
    await load(
      target(table),
      upserts([
        ['1', null, 'one'],
        ['2', null, 'two'],
        ['3', null, 'three'],
      ]),
    );
    const counts = await load(
      target(table),
      changed([
        [{ operation: 'truncate' }, [null, null, null]],
        [UPSERT, ['2', null, 'bad']],
        [UPSERT, ['3', null, 'again']],
        [UPSERT, ['4', null, 'new']],
      ]),
    );
    expect(counts).toMatchObject({ rows_loaded: 2, rows_rejected: 1, rows_deleted: 1 });
    expect(await content(table)).toEqual(['2 two', '3 again', '4 new']);
  });

  it('above the limit fail the stream and roll back the commit', async () => {
    const table = await tableWith(` check (note <> 'bad')`);
    const bad = Object.fromEntries([3, 400, 800].map((id) => [id, [String(id), null, 'bad']]));
    await expect(load(target(table, { rejects: { limit: 2 } }), many(bad))).rejects.toMatchObject({
      code: 'too_many_rejected_rows',
    });
    expect(await content(table)).toEqual([]);
    expect(await kept(table)).toEqual([]);
    const orphans = await tableWith('');
    await place.run(`alter table ${orphans} add foreign key (parent) references ${table} (id)`);
    const all = upserts(Array.from({ length: 1000 }, (_, id) => [String(id), '77', 'orphan']));
    await expect(load(target(orphans), all)).rejects.toMatchObject({ code: 'too_many_rejected_rows' });
  });

  it('fail with table, rule and key if rejects are not kept', async () => {
    const table = await tableWith(`, constraint only_good${counter} check (note <> 'a secret, and bad')`);
    const wanted = target(table, { rejects: null });
    const rows = upserts([
      ['41', null, 'fine'],
      ['42', '7', 'a secret, and bad'],
    ]);
    const failure = await load(wanted, rows).catch((error: Error & { code: string }) => error);
    expect(failure).toMatchObject({ code: 'constraint_violation', type: 'system_error' });
    const { message } = failure as Error;
    expect(message).toContain(`only_good${counter - 1}`);
    expect(message).toContain(table);
    expect(message).not.toContain('secret');
  });
});

test('postgres: reports the key of a rejected row, if known, and no other values', async () => {
  const place = postgresPlace(sides);
  const messageFor = async (row: Cell[], rules: string) => {
    const table = `k${++counter}`;
    await place.run(`create table ${table} (id bigint primary key, parent bigint, note text not null${rules})`);
    await place.run(`insert into ${table} values (1, 1, 'taken')`);
    const { writer } = await place.open(target(table, { rejects: null }));
    try {
      await writer.write(upserts([row]));
      await writer.finish(null);
      return 'nothing';
    } catch (error) {
      return (error as Error).message;
    } finally {
      await writer.abort();
    }
  };
  const refused = await messageFor(['42', '7', null], '');
  expect(refused).toMatch(/^PostgreSQL: null value in column "note" .* \(table public\.k\d+, row with id = 42\)$/);
  expect(refused).not.toContain('7,');
  expect(await messageFor(['43', '7', 'hidden'], ` check (note <> 'hidden')`)).toEndWith(', row with id = 43)');
  expect(await messageFor(['44', '7', 'hidden, too'], ` check (note <> 'hidden, too')`)).not.toContain('row with');
  const taken = await messageFor(['45', '7', 'taken'], ' unique');
  expect(taken).toContain('_note_key');
  expect(taken).not.toContain('row with');
  expect(taken).not.toContain('=(taken)');
});
