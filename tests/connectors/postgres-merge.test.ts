import { expect, test } from 'bun:test';
import { batchOf } from './postgres-support.ts';
import { targetTables } from './postgres-target-tables.ts';

// What all databases share is in merge.test.ts.
const { sides, row, load, content, tableName } = targetTables();

test('merges into a partitioned table', async () => {
  const table = tableName();
  await sides.destination.sql.unsafe(`create table ${table} (id bigint primary key, name text, at timestamptz) partition by hash (id);
    create table ${table}_0 partition of ${table} for values with (modulus 1, remainder 0); insert into ${table} values (1, 'old')`);
  await load({ mode: 'append_dedup' }, batchOf([row(1, 'new'), row(2, 'new')]));
  expect(await content()).toEqual([
    [1, 'new'],
    [2, 'new'],
  ]);
});
