import { expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ConnectorError } from '../../server/connectors/contract/errors.ts';
import { codeOf, duckDbTarget } from './duckdb-target.ts';
import { batchOf, column } from './postgres-support.ts';
import { errorOf, row } from './writing.ts';

const { check, filesRoot, load, open, sql } = duckDbTarget();

test('an invalid value is reported with row and column, and is rolled back', async () => {
  const error = await errorOf(load({}, batchOf([row(1, 'a', '2024-01-01')]), batchOf([row(2, 'b', 'soon')])));
  expect(error).toMatchObject({
    type: 'system_error',
    code: 'value_does_not_fit',
    message: 't: row 2 has "soon" in at, which is not a valid TIMESTAMP WITH TIME ZONE',
  });
  expect(await sql("select 1 from duckdb_tables() where table_name = 't'")).toEqual([]);
});

test.each([
  ['DECIMAL(5,2)', '1.2345', ['1.25', '-999.99', '0', '1e+2', '7']],
  ['FLOAT', '0.123456789', ['0.1', '16777216.0', '1e-45', '3.4028235e+38', 'NaN', '-Infinity', '-0.0']],
  ['DOUBLE', '9007199254740993', ['0.1', '1e+22', '5e-324', '1.7976931348623157e+308', 'NaN', '0.30000000000000004']],
])(
  'a number with more digits than a %s of another file is refused, and others are kept',
  async (type, wrong, right) => {
    const declared = { ...column('amount', 'number'), source_type: type, dialect: 'duckdb' };
    const columns = [column('id', 'integer'), declared];
    const rows = right.map((cell, id) => [String(id), cell]);
    expect(await load({ columns }, batchOf(rows))).toMatchObject({ rows_loaded: right.length });
    const same = right.map((cell, id) => `(${id}, '${cell}'::${type})`).join(', ');
    expect(await sql(`select id, amount from t except select * from (values ${same}) v`)).toEqual([]);
    const more = { fence: 2, stream_run_id: 'second', columns };
    expect(await errorOf(load(more, batchOf([['9', wrong]])))).toMatchObject({
      code: 'value_does_not_fit',
      message: `t: row 1: amount has "${wrong}", which ${type} cannot hold exactly. Change the type of the column, or set inexact_values to allow`,
    });
  },
);

test('the check looks at the schema of a connection, and leaves nothing behind', async () => {
  await load({}, batchOf([row(1, 'a')]));
  expect((await check({ schema: 'shop' })).checks).toMatchObject([{ status: 'passed' }]);
  expect(await errorOf(check({ schema: 'information_schema' }))).toBeInstanceOf(ConnectorError);
  expect(await sql("select 1 from duckdb_schemas() where schema_name = 'shop'")).toEqual([]);
});

test('unusual names in schema, table and column; names that differ only in case, and views, are rejected', async () => {
  const odd = 'Ta"b\'le; — 表 %s \\';
  for (const mode of ['append', 'overwrite', 'append_dedup'] as const) {
    const columns = [column('I "d', 'integer'), column('select', 'string'), column('Ünï', 'string')];
    const more = {
      schema: `S "x ${mode}`,
      table: odd,
      columns,
      primary_key: ['I "d'],
      mode,
      stream_id: `odd/../${mode}`,
    };
    await load(more, batchOf([['1', 'a', 'b']]));
    await load({ ...more, fence: 2 }, batchOf([['2', 'a', 'b']]));
    const rows = await sql(`select 1 from "S ""x ${mode}"."${odd.replaceAll('"', '""')}"`);
    expect(rows.length).toBe(mode === 'overwrite' ? 1 : 2);
  }
  expect(await codeOf(open({ columns: [column('a', 'string'), column('A', 'string')] }))).toBe(
    'config_error duplicate_column',
  );
  await sql('create view v as select 1 as id');
  expect(await codeOf(open({ table: 'v' }))).toBe('config_error not_a_table');
});

test('spilled files are removed with the writer, those of a crash by the next attempt', async () => {
  const left = join(filesRoot(), '.data.duckdb.stream.1.spill/x.tmp');
  await Bun.write(left, 'left');
  const writer = await open({ fence: 2 });
  // Repeating values would compress and fit into memory.
  for (let at = 0; at < 26; at++) {
    const name = randomBytes(12_500_000).toString('base64');
    const rows = Array.from({ length: 2500 }, (_, id) => row(at * 2500 + id, name.slice(id * 6000, (id + 1) * 6000)));
    await writer.write({ rows, bytes: name.length });
  }
  const spilled = () => readdir(filesRoot()).then((names) => names.filter((one) => one.endsWith('.spill')));
  expect(await spilled()).toEqual(['.data.duckdb.stream.2.spill']);
  expect(await writer.finish(null)).toMatchObject({ rows_loaded: 65_000 });
  expect(await spilled()).toEqual([]);
  expect(await sql('select count(*), count(distinct id), sum(length(name)) = 390000000 from t')).toEqual([
    ['65000', '65000', 'true'],
  ]);
});
