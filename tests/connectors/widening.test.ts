import { describe, expect, test } from 'bun:test';
import type {
  AnyDestination,
  AnySource,
  Cell,
  ConnectorContext,
  TargetColumn,
} from '../../server/connectors/contract/connector.ts';
import { duckDbDestination } from '../../server/connectors/duckdb/destination.ts';
import { duckDbSource } from '../../server/connectors/duckdb/source.ts';
import { mysqlDestination } from '../../server/connectors/mysql/destination.ts';
import { mysqlSource } from '../../server/connectors/mysql/source.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { mariaDbMissing } from '../support/mariadb.ts';
import { temporaryFolder } from '../support/postgres.ts';
import {
  destinationConfig as mysqlContext,
  mysqlDatabase,
  sourceConfig as mysqlSourceContext,
} from './mysql-support.ts';
import {
  batchOf,
  column,
  contextOf,
  destinationConfig,
  requestOf,
  sourceConfig,
  targetOf,
  twoDatabases,
} from './postgres-support.ts';

const databases = twoDatabases();
const maria = mysqlDatabase();
const filesRoot = temporaryFolder();
const duck = (connector: AnySource | AnyDestination) => {
  const { ctx } = contextOf(connector.config.parse({ path: 'widening.duckdb' }));
  return { ...ctx, filesRoot } as ConnectorContext<unknown>;
};

interface Place {
  name: string;
  skip: boolean;
  destination: AnyDestination;
  source: AnySource;
  to(): ConnectorContext<unknown>;
  from(): ConnectorContext<unknown>;
}
const PLACES: Place[] = [
  {
    name: 'postgres',
    skip: false,
    destination: postgresDestination,
    source: postgresSource,
    to: () => destinationConfig(databases.destination).ctx,
    from: () => sourceConfig(databases.destination).ctx,
  },
  {
    name: 'mysql',
    skip: mariaDbMissing !== null,
    destination: mysqlDestination,
    source: mysqlSource,
    to: () => mysqlContext(maria).ctx,
    from: () => mysqlSourceContext(maria).ctx,
  },
  {
    name: 'duckdb',
    skip: false,
    destination: duckDbDestination,
    source: duckDbSource,
    to: () => duck(duckDbDestination),
    from: () => duck(duckDbSource),
  },
];

const typed = (
  type: TargetColumn['type'],
  source_type: string | null,
  dialect: TargetColumn['dialect'] = 'postgres',
): TargetColumn => ({
  ...column('value', type),
  source_type,
  dialect: source_type && dialect,
});

/** From, a value, to, a value, and the expected values afterwards. */
const WIDER: [what: string, from: [TargetColumn, string], to: [TargetColumn, string], both: string[]][] = [
  [
    'small to big integers',
    [typed('integer', 'smallint'), '7'],
    [typed('integer', 'bigint'), '5000000000'],
    ['7', '5000000000'],
  ],
  [
    'small to big integers of MySQL',
    [typed('integer', 'smallint', 'mysql'), '7'],
    [typed('integer', 'bigint', 'mysql'), '5000000000'],
    ['7', '5000000000'],
  ],
  [
    'more digits',
    [typed('number', 'numeric(6,2)'), '1.50'],
    [typed('number', 'numeric(10,4)'), '123456.7891'],
    ['1.5', '123456.7891'],
  ],
  ['integers to decimals', [typed('integer', null), '7'], [typed('number', null), '7.25'], ['7', '7.25']],
  ['integers to texts', [typed('integer', null), '7'], [typed('string', null), 'seven'], ['7', 'seven']],
  [
    'dates to moments',
    [typed('date', null), '2026-01-31'],
    [typed('timestamp', null), '2026-02-01 10:00:00'],
    ['2026-01-31 00:00:00', '2026-02-01 10:00:00'],
  ],
  [
    'longer texts',
    [typed('string', 'character varying(3)'), 'abc'],
    [typed('string', 'character varying(6)'), 'abcdef'],
    ['abc', 'abcdef'],
  ],
];

describe.each(PLACES.filter(({ skip }) => !skip))('$name', ({ name, destination, source, to, from }) => {
  let counter = 0;
  async function load(table: string, value: TargetColumn, row: Cell[], mode: 'append' | 'append_dedup' = 'append') {
    const schema = { name: table, fields: [], source_defined_primary_key: null } as never;
    const target = targetOf(schema, {
      table,
      columns: [{ ...column('id', 'integer') }, value],
      primary_key: mode === 'append' ? [] : ['id'],
      mode,
      stream_id: table,
      stream_run_id: crypto.randomUUID(),
      fence: ++counter,
    });
    const writer = await destination.open(to(), target);
    try {
      await writer.write(batchOf([row]));
      await writer.finish(null);
    } finally {
      await writer.abort();
    }
  }
  async function valuesOf(table: string) {
    const stream = (await source.discover(from())).find((one) => one.name === table)!;
    const rows: Cell[][] = [];
    for await (const batch of source.read(from(), requestOf(stream))) rows.push(...batch.rows);
    const shown = (cell: Cell) => (/^\d+\.\d*0$/.test(cell!) ? String(Number(cell)) : cell!.replace(/\.0+$/, ''));
    return rows.toSorted((a, b) => Number(a[0]) - Number(b[0])).map((row) => shown(row[1]!));
  }
  const known = (column_: TargetColumn, { type, source_type, dialect }: TargetColumn) => ({
    ...column_,
    previous: { type, source_type, dialect },
  });

  test.each(WIDER)(
    '%s: the column is widened and keeps its values',
    async (_what, [old, before], [now, after], both) => {
      for (const mode of ['append', 'append_dedup'] as const) {
        const table = `${name}_wide_${++counter}`;
        await load(table, old, ['1', before], mode);
        await load(table, known(now, old), ['2', after], mode);
        expect(await valuesOf(table)).toEqual(both);
      }
    },
  );

  test('a wider column accepts narrower values unchanged', async () => {
    const table = `${name}_narrow`;
    await load(table, typed('string', null), ['1', 'seven']);
    await load(table, known(typed('integer', null), typed('string', null)), ['2', '8']);
    expect(await valuesOf(table)).toEqual(['seven', '8']);
  });

  test("an incompatible type is rejected with the column's name, and nothing changes", async () => {
    const table = `${name}_refused`;
    await load(table, typed('date', null), ['1', '2026-01-31']);
    const wrong = known(typed('boolean', null), typed('date', null));
    await expect(load(table, wrong, ['2', 'true'])).rejects.toMatchObject({
      type: 'schema_changed',
      code: 'column_type_incompatible',
      message: expect.stringContaining(`${table}.value`),
    });
    expect(await valuesOf(table)).toEqual(['2026-01-31']);
  });

  test('a column that a user created with another type stays unchanged', async () => {
    const table = `${name}_own`;
    await load(table, typed('integer', null), ['1', '7']);
    await load(table, typed('string', null), ['2', '8']);
    const stream = (await source.discover(from())).find((one) => one.name === table)!;
    expect(stream.fields.find(({ path }) => path[0] === 'value')!.type).toBe('integer');
    expect(await valuesOf(table)).toEqual(['7', '8']);
  });
});
