import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { ValueType } from '../../server/connectors/cells/casts.ts';
import { ValueGate } from '../../server/connectors/cells/value-gate.ts';
import type { Cell, LogicalType, TargetColumn, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { mariaDbMissing } from '../support/mariadb.ts';
import { mysqlDatabase } from './mysql-support.ts';
import { batchOf, column, targetOf, twoDatabases } from './postgres-support.ts';
import { duckDbPlace, mysqlPlace, postgresPlace, type RejectingPlace } from './rejects-places.ts';

const sides = twoDatabases();
const side = mysqlDatabase();
const PLACES = {
  postgres: { make: async () => postgresPlace(sides), skip: false },
  mysql: { make: async () => mysqlPlace(side, true), skip: mariaDbMissing !== null },
  duckdb: { make: duckDbPlace, skip: false },
};

/** Columns of a table that is narrower than its source: the type at the source and at the destination. */
const COLUMNS: Record<string, { from: LogicalType; types: Record<keyof typeof PLACES, string> }> = {
  amount: { from: 'number', types: { postgres: 'numeric(10,2)', mysql: 'decimal(10,2)', duckdb: 'decimal(10,2)' } },
  ratio: { from: 'number', types: { postgres: 'real', mysql: 'float', duckdb: 'float' } },
  whole: { from: 'number', types: { postgres: 'bigint', mysql: 'bigint', duckdb: 'bigint' } },
  moment: { from: 'timestamp', types: { postgres: 'timestamp(0)', mysql: 'datetime', duckdb: 'timestamp_s' } },
  day: { from: 'timestamp', types: { postgres: 'date', mysql: 'date', duckdb: 'date' } },
  flag: { from: 'boolean', types: { postgres: 'boolean', mysql: 'tinyint(1)', duckdb: 'boolean' } },
  code: { from: 'string', types: { postgres: 'integer', mysql: 'int', duckdb: 'integer' } },
};

/**
 * The value that arrives and the value that is stored: `exact`, or the value under `inexact_values: allow`; null:
 * refused even then.
 */
const VALUES: [string, string, string | null, 'exact'?][] = [
  ['amount', '1.2', '1.20', 'exact'],
  ['amount', '-12345678.90', '-12345678.90', 'exact'],
  ['amount', '1.2300', '1.23', 'exact'],
  ['amount', '1.235', '1.24'],
  ['amount', '-0.005', '-0.01'],
  ['amount', '1e-3', '0.00'],
  ['ratio', '0.5', '0.5', 'exact'],
  ['ratio', '0.1', '0.1', 'exact'],
  ['ratio', '1.00000001', '1'],
  ['ratio', '1e39', null],
  ['whole', '42', '42', 'exact'],
  ['whole', '7.00', '7', 'exact'],
  ['whole', '1.5', '2'],
  ['whole', '-2.49', '-2'],
  ['moment', '2026-01-31 10:00:00', '2026-01-31 10:00:00', 'exact'],
  ['moment', '2026-01-31 10:00:00.000', '2026-01-31 10:00:00', 'exact'],
  ['moment', '2026-12-31 23:59:58.5', '2026-12-31 23:59:59'],
  ['day', '2026-01-31 00:00:00', '2026-01-31', 'exact'],
  ['day', '2026-01-31 23:59:59.999999', '2026-01-31'],
  ['flag', 'true', 'true', 'exact'],
  ['code', '42', '42', 'exact'],
  ['code', ' +007 ', '7', 'exact'],
  ['code', '0x10', null],
  ['code', '1_000', null],
  ['code', '1.5', '2'],
];

const NAMES = Object.keys(COLUMNS);
const rows = (): Cell[][] =>
  VALUES.map(([name, value], id) => [String(id), ...NAMES.map((one) => (one === name ? value : null))]);
const isExact = ([, , , exact]: (typeof VALUES)[number]) => exact === 'exact';

/** A driver shows the single 0.1 as the double it is. */
const sameValue = (a: string, b: string) =>
  a === b ||
  (b === 'true' && a === '1') ||
  (Number.isFinite(Number(b)) && Math.fround(Number(a)) === Math.fround(Number(b))) ||
  a.startsWith(`${b}.0`);

describe.each(Object.entries(PLACES))('a table with narrower columns: %s', (name, { make, skip }) => {
  let place: RejectingPlace;
  let fence = 0;
  const it = test.skipIf(skip);
  beforeAll(async () => {
    if (skip) return;
    place = await make();
    await place.before?.();
  });
  afterAll(async () => {
    if (!skip) await place.after?.();
  });

  async function open(table: string, more: Partial<WriteTarget>) {
    const types = NAMES.map((one) => `${one} ${COLUMNS[one]!.types[name as keyof typeof PLACES]}`);
    await place.run(`create table ${table} (id bigint, ${types.join(', ')})`);
    const columns = [column('id', 'integer'), ...NAMES.map((one) => column(one, COLUMNS[one]!.from))];
    return place.open(
      targetOf({ name: table, fields: [], source_defined_primary_key: null } as never, {
        table,
        columns,
        stream_id: table,
        fence: ++fence,
        ...more,
      }),
    );
  }
  const stored = async (table: string) => {
    const found = new Map<number, string>();
    for (const one of NAMES) {
      const [ids, values] = [
        await place.values(`select id from ${table} where ${one} is not null order by id`),
        await place.values(`select ${one} from ${table} where ${one} is not null order by id`),
      ];
      for (const [at, id] of ids.entries()) found.set(Number(id), asText(values[at]!));
    }
    return found;
  };

  it('refuses what it cannot hold exactly, and loads the rest', async () => {
    const { writer } = await open('refusing', { rejects: { limit: 100 } });
    await writer.write(batchOf(rows()));
    const exact = VALUES.filter(isExact);
    expect(await writer.finish(null)).toMatchObject({
      rows_loaded: exact.length,
      rows_rejected: VALUES.length - exact.length,
    });
    const found = await stored('refusing');
    for (const [id, value] of VALUES.entries()) {
      expect([id, isExact(value), found.has(id)]).toEqual([id, isExact(value), isExact(value)]);
      if (isExact(value)) expect(sameValue(found.get(id)!, value[2]!) || `${value[0]}: ${found.get(id)}`).toBe(true);
    }
    const reasons = await place.values("select reason from _rejected where table_name = 'refusing'");
    expect(reasons.filter((reason) => reason.includes('refusing: amount has "1.235", which'))).toHaveLength(1);
  });

  it('without rejected rows, the first such value ends the run with its row, field and value', async () => {
    const { writer } = await open('strict', {});
    const failed = writer.write(
      batchOf([
        ['1', '1.00', ...NAMES.slice(1).map(() => null)],
        ['2', '1.005', ...NAMES.slice(1).map(() => null)],
      ]),
    );
    await expect(failed).rejects.toMatchObject({
      code: 'value_does_not_fit',
      message: expect.stringMatching(
        /^strict: row 2: amount has "1\.005", which (numeric|decimal|DECIMAL)\(10,2\) cannot hold exactly/,
      ),
    });
    await writer.abort();
  });

  it.each([
    ['DOUBLE', 'double precision', ['0.1', '9007199254740992', '1e+22'], '9007199254740993'],
    ['DECIMAL(5,2)', 'numeric(5,2)', ['1.25', '-999.99'], '1.255'],
    ['FLOAT', 'double precision', ['0.1', '16777216.0'], '0.1000000000000000001'],
  ])('a number beyond the %s that other Parquet files have is refused', async (source_type, type, right, wrong) => {
    const table = `beyond_${source_type.toLowerCase().replaceAll(/\W+/g, '_')}`;
    await place.run(`create table ${table} (id bigint, amount ${type})`);
    const columns = [column('id', 'integer'), { ...column('amount', 'number'), source_type, dialect: 'duckdb' }];
    const { writer } = await place.open(
      targetOf({ name: table, fields: [], source_defined_primary_key: null } as never, {
        table,
        columns,
        stream_id: table,
        fence: ++fence,
      }),
    );
    await writer.write(batchOf(right.map((cell, id) => [String(id), cell])));
    await expect(writer.write(batchOf([['9', wrong]]))).rejects.toMatchObject({
      code: 'value_does_not_fit',
      message: expect.stringContaining(`${table}: row ${right.length + 1}: amount has "${wrong}", which `),
    });
    await writer.abort();
  });

  it('with allow, writes the nearest value and counts per field', async () => {
    const { writer, warnings } = await open('allowing', { rejects: { limit: 100 }, inexact_values: 'allow' });
    await writer.write(batchOf(rows()));
    await writer.finish(null);
    const found = await stored('allowing');
    for (const [id, [field, , wanted]] of VALUES.entries()) {
      if (wanted === null) expect([field, found.has(id)]).toEqual([field, false]);
      else
        expect(sameValue(found.get(id) ?? 'none', wanted) || `${field}: ${found.get(id)} instead of ${wanted}`).toBe(
          true,
        );
    }
    expect(warnings.filter((code) => code === 'values_changed')).toHaveLength(6);
  });

  it('with allow, counts what earlier attempts have changed', async () => {
    const more = { stream_run_id: Bun.randomUUIDv7(), inexact_values: 'allow' } as const;
    await place.run('create table resumed (id bigint, amount numeric(10,2))');
    const columns = [column('id', 'integer'), column('amount', 'number')];
    const openAgain = () => {
      const stream = { name: 'resumed', fields: [], source_defined_primary_key: null } as never;
      return place.open(targetOf(stream, { table: 'resumed', stream_id: 'resumed', columns, ...more, fence: ++fence }));
    };
    const first = await openAgain();
    await first.writer.write(batchOf([['1', '1.005']]));
    await first.writer.checkpoint({ cursor: null });
    await first.writer.write(batchOf([['2', '2.005']]));
    await first.writer.abort();
    const second = await openAgain();
    await second.writer.write(
      batchOf([
        ['2', '2.005'],
        ['3', '3.005'],
      ]),
    );
    await second.writer.finish(null);
    expect(second.messages).toEqual([expect.stringMatching(/^3 values of resumed\.amount .*1\.005"$/)]);
  });

  const LABEL = column('label', 'string');
  async function openLabels(table: string, type: string, more: Partial<WriteTarget>) {
    await place.run(`create table ${table} (id bigint, label ${type})`);
    const stream = { name: table, fields: [], source_defined_primary_key: null } as never;
    const columns = [column('id', 'integer'), LABEL];
    return place.open(targetOf(stream, { table, columns, stream_id: table, fence: ++fence, ...more }));
  }
  if (name === 'duckdb') {
    it('texts are not taken for bytes', async () => {
      const { writer } = await openLabels('bytes', 'blob', { rejects: { limit: 100 } });
      const texts = ['\\x00ff', null, '\\x', 'abcd', '\\x0', '\\xzz'];
      await writer.write(batchOf(texts.map((text, id) => [String(id), text])));
      expect(await writer.finish(null)).toMatchObject({ rows_loaded: 3, rows_rejected: 3 });
    });
    // It has no limits of length and no tables that must be kept.
    return;
  }

  it('blanks at the end that do not fit are refused, or removed and counted', async () => {
    const texts = ['abc', 'ab ', 'abc  ', '\u{1f600}b ', ' ', 'ab    '];
    const labels = () => batchOf(texts.map((text, id) => [String(id), text]));
    const refusing = await openLabels('labels', 'varchar(3)', { rejects: { limit: 100 } });
    await refusing.writer.write(labels());
    expect(await refusing.writer.finish(null)).toMatchObject({ rows_loaded: 4, rows_rejected: 2 });
    const allowing = await openLabels('allowed_labels', 'varchar(3)', { inexact_values: 'allow' });
    await allowing.writer.write(labels());
    await allowing.writer.finish(null);
    expect(await place.values('select label from allowed_labels order by id')).toEqual([
      'abc',
      'ab ',
      'abc',
      '\u{1f600}b ',
      ' ',
      'ab ',
    ]);
    expect(allowing.warnings).toEqual(['values_changed']);
    const trimming = await openLabels('fixed_labels', 'char(9)', { rejects: { limit: 100 } });
    await trimming.writer.write(labels());
    // MySQL returns char without the blanks at its end; PostgreSQL does not count them.
    expect(await trimming.writer.finish(null)).toMatchObject({ rows_loaded: name === 'mysql' ? 1 : 6 });
  });

  it.each([
    ['amounts', 'numeric(10,2)', 'number', ['1.005', '2.50']],
    ['names', 'varchar(3)', 'string', ['abc  ', 'abc']],
  ] as const)(
    'an overwrite of a table that stays refuses what it cannot hold: %s',
    async (table, type, from, [bad, good]) => {
      await place.run(`create table ${table} (id bigint, label ${type})`);
      await place.run(`insert into ${table} values (0, '${good}')`);
      // Something that belongs to the table keeps it from being replaced.
      await place.run(
        name === 'mysql'
          ? `create trigger ${table}_kept before insert on ${table} for each row set @seen = 1`
          : `create view ${table}_kept as select * from ${table}`,
      );
      const overwrite = async (value: string, inexact_values?: 'allow') => {
        const stream = { name: table, fields: [], source_defined_primary_key: null } as never;
        const columns = [column('id', 'integer'), { ...LABEL, type: from as LogicalType }];
        const attempt = { stream_run_id: Bun.randomUUIDv7(), fence: ++fence };
        const { writer, warnings } = await place.open(
          targetOf(stream, { table, columns, stream_id: table, ...attempt, mode: 'overwrite', inexact_values }),
        );
        try {
          await writer.write(
            batchOf([
              ['1', good],
              ['2', value],
            ]),
          );
          return { ...(await writer.finish(null)), warnings };
        } catch (error) {
          await writer.abort();
          throw error;
        }
      };
      await expect(overwrite(bad)).rejects.toMatchObject({ code: 'value_does_not_fit' });
      expect(await place.values(`select id from ${table}`)).toEqual(['0']);
      expect(await overwrite(good)).toMatchObject({ rows_loaded: 2 });
      expect((await place.values(`select label from ${table} order by id`)).map(String)).toEqual([good, good]);
      expect(await overwrite(bad, 'allow')).toMatchObject({ rows_loaded: 2, warnings: ['values_changed'] });
    },
  );
});

/** Drivers return dates as objects whose text is in local time. */
function asText(value: string): string {
  const at = /GMT|Z$/.test(value) ? new Date(value) : null;
  if (!at) return value;
  const text = at.toISOString().slice(0, 19).replace('T', ' ');
  return text.endsWith(' 00:00:00') ? text.slice(0, 10) : text;
}

const texts = (place: RejectingPlace, table: string, more: Partial<WriteTarget>) =>
  place.open(
    targetOf({ name: table, fields: [], source_defined_primary_key: null } as never, {
      table,
      columns: [column('id', 'integer'), column('note', 'string')],
      stream_id: table,
      ...more,
    }),
  );

describe.each(Object.entries(PLACES))('texts that UTF-8 cannot hold: %s', (_name, { make, skip }) => {
  test.skipIf(skip)('are refused, or changed and counted', async () => {
    const place = await make();
    await place.before?.();
    const half = [
      ['1', 'whole \u{1f98a}'],
      ['2', 'half \ud83e'],
      ['3', '\udd8a half'],
    ];
    const refusing = await texts(place, 'strict_texts', { rejects: { limit: 10 } });
    await refusing.writer.write(batchOf(half.map((row) => [...row])));
    expect(await refusing.writer.finish(null)).toMatchObject({ rows_loaded: 1, rows_rejected: 2 });
    const allowing = await texts(place, 'changed_texts', { inexact_values: 'allow' });
    await allowing.writer.write(batchOf(half.map((row) => [...row])));
    expect(await allowing.writer.finish(null)).toMatchObject({ rows_loaded: 3 });
    expect(allowing.warnings).toEqual(['values_changed']);
    expect(await place.values('select note from changed_texts order by id')).toEqual([
      'whole \u{1f98a}',
      'half \ufffd',
      '\ufffd half',
    ]);
    await place.after?.();
  });
});

test('a moment passes to a column without a zone, and JSON or text of MySQL to one of text, only where nothing is lost', () => {
  const gate = (type: LogicalType, holds: ValueType, more: Partial<TargetColumn> = {}) =>
    ValueGate.of([{ column: { ...column('v', type), ...more }, holds, shown: 'v' }], {
      table: 't',
      inexact: 'refuse',
      texts: { nul: true, unread_json: true },
    });
  expect(gate('timestamp_tz', { type: 'timestamp', places: 6 })).toBeNull();
  expect(gate('timestamp_tz', { type: 'timestamp', places: 0 })?.needsCells).toBe(true);
  const tz = { from: { type: 'timestamp_tz' as const, source_type: null, dialect: null } };
  const local = [['2026-01-31 10:00:00+00'], ['2026-01-31 10:00:00.5+02:30']];
  gate('timestamp', { type: 'timestamp', places: 6 }, tz)?.takeAll(local);
  expect(local).toEqual([['2026-01-31 10:00:00'], ['2026-01-31 07:30:00.500000']]);
  const text = gate('string', { type: 'string' }, { from: { type: 'string', source_type: null, dialect: 'mysql' } });
  expect(() => text?.takeAll([['whole \u{1f98a}'], ['half \ud83e']])).toThrow('t: row 2: v has "half \\ud83e"');
  const json = gate('json', { type: 'string' });
  expect(json?.needsCells).toBe(false);
  expect(() => json?.takeAll([['[1]'], ['[nan]']])).toThrow('t: row 2: v has "[nan]"');
});
