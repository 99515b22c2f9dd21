import { beforeAll, describe, expect, test } from 'bun:test';
import type { Cell, Field, Filter, StreamSchema } from '../../server/connectors/contract/connector.ts';
import { filterFinding, filterTest } from '../../server/connectors/cells/filters.ts';
import { MysqlSession } from '../../server/connectors/mysql/connection/session.ts';
import { conditions as mysqlConditions } from '../../server/connectors/mysql/read/select.ts';
import { mysqlSource } from '../../server/connectors/mysql/source.ts';
import { PgSession } from '../../server/connectors/postgres/connection/session.ts';
import { literal } from '../../server/connectors/postgres/connection/sql.ts';
import { conditions as postgresConditions } from '../../server/connectors/postgres/read/select.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { describeMysql, mysqlDatabase, sourceConfig as mysqlConfig } from './mysql-support.ts';
import { sourceConfig as postgresConfig, twoDatabases } from './postgres-support.ts';
import { readBatches, requestOf } from './reading.ts';

/*
 * A filter has one meaning, PostgreSQL's: the SQL of a connector, the engine and PostgreSQL itself
 * select the same rows. Operands that PostgreSQL cannot evaluate are refused.
 */

type Operator = Filter['operator'];
const COMPARING: Operator[] = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte'];
const SIGNS: Partial<Record<Operator, string>> = { eq: '=', ne: '<>', gt: '>', gte: '>=', lt: '<', lte: '<=' };

interface Column {
  type: string;
  values: string[];
  operands: unknown[];
}

const TEXTS = ['', 'ACTIVE', 'active', 'ACTIVE ', 'Äpfel', 'zoe', '\u{1F600}', '\uFF5E', 'a%b_c\\', "it's"];
const MOMENTS = ['1969-12-31 23:59:59.999999', '2026-01-31 10:00:00', '2026-01-31 10:00:00.5', '9999-12-31 23:59:59'];
const FAR = ['0044-03-15 12:00:00 BC', '10000-01-01 00:00:00', 'infinity', '-infinity'];
const MOMENT_OPERANDS = [
  '2026-01-31',
  '2026-01-31T10:00:00Z',
  '2026-01-31 10:00:00.500000',
  '1969-12-31 23:59:59.999999',
  '2026-01-31T12:00:00+02:00',
  '2026-02-30',
  'yesterday at nine',
];
const FAR_OPERANDS = ['0044-03-15 12:00:00 BC', '10000-01-01', 'infinity', '-infinity'];
const NUMBERS = ['0', '-2', '1.50', '10', '100', '1000000.25', '0.1', '-0.000001'];
const NUMBER_OPERANDS = [1.5, '1.50', '-2', 0, '1e2', '0.1', '0.10000000000000001', 'abc', '', '1.5.5'];

const POSTGRES: Record<string, Column> = {
  plain: { type: 'text collate german', values: TEXTS, operands: ['ACTIVE', 'zoe', '', '\uFF5E', 5, 'a\0b'] },
  short: { type: 'varchar(10)', values: TEXTS, operands: ['ACTIVE', 'Äpfel'] },
  padded: { type: 'char(10)', values: TEXTS, operands: ['ACTIVE', 'ACTIVE  ', 'a', ''] },
  letters: { type: 'text collate any_case', values: TEXTS, operands: ['ACTIVE', 'active'] },
  mood: { type: 'mood', values: ['sad', 'ok', 'happy'], operands: ['ok', 'unknown'] },
  id: {
    type: 'uuid',
    values: ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '00000000-0000-0000-0000-00000000000f'],
    operands: ['A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{a0eebc999c0b4ef8bb6d6bb9bd380a11}', 'no uuid'],
  },
  whole: { type: 'int', values: ['0', '-2', '10', '2147483647'], operands: [10, '9', 3_000_000_000, 'abc', 1.5, ''] },
  large: { type: 'bigint', values: ['9007199254740993', '-1'], operands: ['9007199254740992', '9007199254740993'] },
  amount: { type: 'numeric(12,2)', values: NUMBERS, operands: NUMBER_OPERANDS },
  exact: {
    type: 'numeric',
    values: [...NUMBERS, 'NaN', '1.500', '123456789012345678901234567890.5'],
    operands: [...NUMBER_OPERANDS, 'NaN', '123456789012345678901234567890.5'],
  },
  rough: {
    type: 'float8',
    values: [...NUMBERS, 'NaN', 'Infinity', '-Infinity'],
    operands: [...NUMBER_OPERANDS, 'NaN'],
  },
  single: { type: 'float4', values: [...NUMBERS, 'NaN', 'Infinity'], operands: [...NUMBER_OPERANDS, 'Infinity'] },
  flag: { type: 'boolean', values: ['true', 'false'], operands: [true, 'false', 't', '1', 'maybe'] },
  day: {
    type: 'date',
    values: ['2026-01-31', '1969-12-31', '0044-03-15 BC', '10000-01-01', 'infinity', '-infinity'],
    operands: ['2026-01-31', '2026-02-01', '10000-01-01', 'infinity', '2026-02-30'],
  },
  local: { type: 'timestamp', values: [...MOMENTS, ...FAR], operands: [...MOMENT_OPERANDS, ...FAR_OPERANDS] },
  moment: { type: 'timestamptz', values: [...MOMENTS, ...FAR], operands: [...MOMENT_OPERANDS, ...FAR_OPERANDS] },
  time: { type: 'time', values: ['09:00:00', '23:59:59.5', '24:00:00'], operands: ['9:00', '23:59:59.50', '25:00'] },
  zoned: { type: 'timetz', values: ['09:00:00+00', '09:00:00+02'], operands: ['09:00:00+00'] },
  address: { type: 'inet', values: ['10.0.0.1', '9.255.0.0/16'], operands: ['10.0.0.1'] },
  length: { type: 'interval', values: ['1 day', '24 hours'], operands: ['P1D'] },
  bytes: { type: 'bytea', values: ['\\x00ff', '\\x', '\\xAB'], operands: ['\\xab', '\\x00FF', 'xyz'] },
  document: { type: 'jsonb', values: ['{"a": 1}', '[1]'], operands: ['{"a": 1}'] },
  list: { type: 'int[]', values: ['{1,2}'], operands: ['{1,2}'] },
  domain: { type: 'score', values: ['0.1', '2'], operands: ['0.1', 2] },
};

const MYSQL: Record<string, Column> = {
  plain: { type: 'varchar(20)', values: TEXTS, operands: ['ACTIVE', 'zoe', '', '\uFF5E', 5] },
  padded: { type: 'char(20)', values: TEXTS, operands: ['ACTIVE', 'ACTIVE  ', 'a'] },
  mood: { type: "enum('sad','ok','happy')", values: ['sad', 'ok', 'happy'], operands: ['ok', 'unknown'] },
  whole: { type: 'int', values: ['0', '-2', '10', '2147483647'], operands: [10, '9', 3_000_000_000, 'abc', 1.5] },
  large: { type: 'bigint unsigned', values: ['18446744073709551615', '1'], operands: ['18446744073709551615', '-5'] },
  amount: { type: 'decimal(12,2)', values: NUMBERS, operands: [...NUMBER_OPERANDS, 'NaN'] },
  rough: { type: 'double', values: NUMBERS, operands: [...NUMBER_OPERANDS, 'NaN', 'Infinity', '-Infinity'] },
  single: { type: 'float', values: NUMBERS, operands: NUMBER_OPERANDS },
  flag: { type: 'bit(1)', values: ['1', '0'], operands: [true, 'false', 'maybe'] },
  day: {
    type: 'date',
    values: ['2026-01-31', '1969-12-31', '0000-00-00'],
    operands: ['2026-01-31', '2026-02-01', ...FAR_OPERANDS],
  },
  local: { type: 'datetime(6)', values: [...MOMENTS, '0000-00-00'], operands: [...MOMENT_OPERANDS, ...FAR_OPERANDS] },
  moment: {
    type: 'timestamp(6) null',
    values: ['1971-01-01 00:00:00', '2026-01-31 10:00:00.5'],
    operands: [...MOMENT_OPERANDS, ...FAR_OPERANDS],
  },
  span: { type: 'time', values: ['-10:00:00', '100:00:00'], operands: ['-10:00:00'] },
  bytes: { type: 'varbinary(10)', values: ['ab', ''], operands: ['\\x6162', 'xyz'] },
};

/** Each operand with every operator. */
function filtersOf(name: string, { operands }: Column): Filter[] {
  const [first, second = first] = operands;
  return [
    ...operands.flatMap((value) => COMPARING.map((operator) => ({ field: name, operator, value }))),
    ...(['contains', 'starts_with'] as const).map((operator) => ({ field: name, operator, value: first })),
    ...(['in', 'not_in', 'between'] as const).map((operator) => ({ field: name, operator, value: [first, second] })),
    ...(['is_null', 'is_not_null'] as const).map((operator) => ({ field: name, operator, value: null })),
  ];
}

const columnsSql = (columns: Record<string, Column>) =>
  Object.entries(columns).map(([name, { type }]) => `${name} ${type}`);
const most = (columns: Record<string, Column>) =>
  Math.max(...Object.values(columns).map(({ values }) => values.length));
/** One row more than there are values, so that each column has a NULL. */
const rowsSql = (columns: Record<string, Column>, quote: (text: string) => string) =>
  Array.from({ length: most(columns) + 1 }, (_, at) => {
    const cells = Object.values(columns).map(({ values }) => (at < values.length ? quote(values[at]!) : 'null'));
    return `(${[at, ...cells].join(', ')})`;
  }).join(',\n');

interface Compared {
  filter: Filter;
  pushed: string[] | string;
  engine: string[];
}
const differing = (found: Compared[]) =>
  found.filter(({ pushed, engine }) => !Bun.deepEquals(pushed, engine)).map((one) => JSON.stringify(one));

function byEngine(schema: StreamSchema, rows: Cell[][], filter: Filter): string[] {
  const index = schema.fields.findIndex(({ path }) => path[0] === filter.field);
  const matches = filterTest(filter, schema.fields[index]!);
  return rows.filter((row) => matches(row[index] ?? null)).map(([id]) => id!);
}

const fieldOf = (schema: StreamSchema, filter: Filter): Field =>
  schema.fields.find(({ path }) => path[0] === filter.field)!;
const idsOf = (rows: (string | null)[][]) => rows.map(([id]) => id!);

describe('postgres', () => {
  const databases = twoDatabases();
  const filters = Object.entries(POSTGRES).flatMap(([name, column]) => filtersOf(name, column));
  let schema: StreamSchema;
  let rows: Cell[][];
  let session: PgSession;
  beforeAll(async () => {
    await databases.source.sql.unsafe(`
      create collation german (provider = icu, locale = 'de');
      create collation any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
      create type mood as enum ('sad', 'ok', 'happy');
      create domain score as float8;
      set timezone = 'UTC';
      create table things (row_id int primary key, ${columnsSql(POSTGRES).join(', ')});
      insert into things values ${rowsSql(POSTGRES, literal)}`);
    const { ctx } = postgresConfig(databases.source);
    schema = (await postgresSource.discover(ctx)).find(({ name }) => name === 'things')!;
    rows = (await readBatches(postgresSource, ctx, requestOf(schema))).flatMap((batch) => batch.rows);
    rows.sort(([a], [b]) => Number(a) - Number(b));
    session = await PgSession.open(ctx, { phase: 'run' });
    return () => session.close();
  });
  const select = async (condition: string) => {
    try {
      return idsOf((await session.query(`select row_id from things where ${condition} order by 1`)).rows);
    } catch (error) {
      return (session.translate(error) as Error).message;
    }
  };
  const compared = async (filter: Filter, condition: string): Promise<Compared> => ({
    filter,
    pushed: await select(condition),
    engine: byEngine(schema, rows, filter),
  });

  test('the SQL and the engine select the same rows', async () => {
    const valid = filters.filter((filter) => filterFinding(filter, fieldOf(schema, filter)) === null);
    const found: Compared[] = [];
    for (const filter of valid) {
      found.push(await compared(filter, postgresConditions(requestOf(schema, { filters: [filter] }))[0]!));
    }
    expect(found.length).toBeGreaterThan(400);
    expect(differing(found)).toEqual([]);
  });

  test('these are the rows that PostgreSQL selects, and what it cannot evaluate is refused', async () => {
    const found: Compared[] = [];
    for (const filter of filters.filter(({ operator }) => operator in SIGNS)) {
      const field = fieldOf(schema, filter);
      const isText = /^(text|character)/.test(field.source_type ?? '');
      const value = String(filter.value);
      if (value.includes('\0') || filterFinding(filter, field) !== null) continue;
      // Without an order of its own, a type is compared by its texts.
      if (['zoned', 'address', 'length', 'mood'].includes(filter.field)) continue;
      const condition = `${filter.field}${isText ? ' collate "C"' : ''} ${SIGNS[filter.operator]} ${literal(value)}`;
      const one = await compared(filter, condition);
      // PostgreSQL refuses a number that is too large for the column; the service finds no equal row.
      if (typeof one.pushed !== 'string' || !one.pushed.includes('out of range')) found.push(one);
    }
    expect(found.length).toBeGreaterThan(300);
    expect(differing(found)).toEqual([]);
  });
});

describeMysql('mysql', () => {
  const side = mysqlDatabase();
  test.each(['null', 'keep'] as const)(
    'the SQL and the engine select the same rows (zero dates: %s)',
    async (zero_dates) => {
      const quote = (text: string) =>
        text === '1' || text === '0' ? text : `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
      await side.sql(`set sql_mode = '', time_zone = '+00:00';
      create or replace table things (row_id int primary key, ${columnsSql(MYSQL).join(', ')}) default character set utf8mb4;
      insert into things values ${rowsSql(MYSQL, quote)}`);
      const { ctx } = mysqlConfig(side, { zero_dates });
      const schema = (await mysqlSource.discover(ctx)).find(({ name }) => name === 'things')!;
      const rows = (await readBatches(mysqlSource, ctx, requestOf(schema))).flatMap((batch) => batch.rows);
      const session = await MysqlSession.open(ctx, { phase: 'run' });
      const found: Compared[] = [];
      for (const filter of Object.entries(MYSQL).flatMap(([name, column]) => filtersOf(name, column))) {
        if (filterFinding(filter, fieldOf(schema, filter)) !== null) continue;
        const [condition] = mysqlConditions(requestOf(schema, { filters: [filter] }), zero_dates === 'keep');
        const pushed = await session.query(`select row_id from things where ${condition} order by 1`).then(
          (result) => idsOf(result.rows),
          (error: unknown) => String(session.translate(error)),
        );
        found.push({ filter, pushed, engine: byEngine(schema, rows, filter) });
      }
      await session.close();
      expect(found.length).toBeGreaterThan(250);
      expect(differing(found)).toEqual([]);
    },
  );
});

describe('findings', () => {
  const field = (type: Field['type'], source_type: string | null = null, dialect: string | null = null) =>
    ({ path: ['x'], type, source_type, dialect }) as Field;
  const CASES: [Field, Operator, unknown, string | null][] = [
    [field('integer'), 'eq', undefined, 'value'],
    [field('integer'), 'eq', null, 'value'],
    [field('integer'), 'gt', 'abc', 'value'],
    [field('integer'), 'eq', [1], 'value'],
    [field('integer'), 'between', 5, 'value'],
    [field('integer'), 'between', [1, 2, 3], 'value'],
    [field('integer'), 'between', [1, 2], null],
    [field('integer'), 'in', 5, 'value'],
    [field('integer'), 'in', [5, null], 'value'],
    [field('integer'), 'is_null', null, null],
    [field('string'), 'gt', 'a', null],
    [field('string', 'public.mood', 'postgres'), 'gt', 'ok', 'operator'],
    [field('string', 'public.mood', 'postgres'), 'eq', 'ok', null],
    [field('string', 'inet', 'postgres'), 'between', ['10.0.0.1', '10.0.0.9'], 'operator'],
    [field('json'), 'eq', '{}', 'operator'],
    [field('json'), 'contains', '"a"', null],
    [field('array'), 'eq', '{}', 'operator'],
    [field('string'), 'eq', '\ud800', 'value'],
    [field('timestamp'), 'eq', '2026-01-31T10:00:00+02:00', 'value'],
    [field('timestamp_tz'), 'eq', '2026-01-31T10:00:00+02:00', null],
    [field('date'), 'gt', '2026-01-31T10:00:00Z', 'value'],
    [field('date'), 'gt', '2026-01-31T00:00:00Z', null],
    [field('number'), 'eq', 'Infinity', 'value'],
  ];
  test.each(CASES)('%j %s %j: %p', (one, operator, value, place) => {
    expect(filterFinding({ field: 'x', operator, value }, one)?.place ?? null).toBe(place as never);
  });
});
