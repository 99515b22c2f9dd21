import { createHash } from 'node:crypto';
import { describe, expect, test } from 'bun:test';
import type { Cell, Field, Filter, LogicalType, StreamSchema } from '../../server/connectors/contract/connector.ts';
import { SchemaChangedError } from '../../server/connectors/contract/errors.ts';
import { findConnector } from '../../server/connectors/registry.ts';
import { createMapper } from '../../server/transfer/mapping.ts';
import { changeFields } from '../../server/connectors/contract/change-fields.ts';
import { DELETE, TRUNCATE, UPSERT } from '../../server/connectors/contract/changes.ts';
import { planTransfer } from '../../server/pipeline/transfer-plan.ts';

const source = findConnector('source', 'sample');
if (!source) throw new Error('the sample source is gone');

const field = (name: string, type: LogicalType): Field => ({
  path: [name],
  type,
  source_type: 'native',
  dialect: 'postgres',
  nullable: true,
  is_primary_key: name === 'id',
  is_cursor_candidate: false,
});
const schema: StreamSchema = {
  namespace: null,
  name: 'people',
  description: null,
  fields: [field('id', 'integer'), field('email', 'string'), field('age', 'integer')],
  supported_sync_modes: ['full_refresh'],
  source_defined_cursor: false,
  default_cursor_field: null,
  source_defined_primary_key: [['id']],
  is_resumable: false,
  supports_date_window: false,
  suggested: true,
};

const plan = (stream: Record<string, unknown>) =>
  planTransfer({
    source,
    schema,
    stream: { fields: [], filters: [], primary_key: null, cursor_field: null, ...stream } as never,
  });
const salt = (value: string | Uint8Array) => `salted:${String(value)}`;
const run = (stream: Record<string, unknown>, rows: Cell[][]) =>
  createMapper(plan(stream), { salted: salt, encrypted: salt })({ rows, bytes: 0 }).rows;
const choice = (name: string, rest: object) => ({
  path: [name],
  selected: true,
  destination_name: null,
  destination_type: null,
  masking: 'none',
  ...rest,
});

describe('mapping a row', () => {
  test('masks hide the value but keep null', () => {
    const rows = () =>
      [
        ['1', 'a@b.c', '30'],
        ['2', null, '31'],
      ] as Cell[][];
    const masked = (masking: string) => run({ fields: [choice('email', { masking })] }, rows()).map((row) => row[1]);
    expect(masked('redact')).toEqual(['***', null]);
    expect(masked('hash_sha256')).toEqual([createHash('sha256').update('a@b.c').digest('hex'), null]);
    expect(masked('hash_sha256_salted')).toEqual(['salted:a@b.c', null]);
  });

  test('a masked column is text, whatever its type was', () => {
    const [, , age] = plan({ fields: [choice('age', { masking: 'redact' })] }).columns;
    expect(age?.target).toMatchObject({ name: 'age', type: 'string', source_type: null });
  });

  test('a deselected field is not loaded, a renamed one is loaded under its new name', () => {
    const { columns } = plan({
      fields: [choice('age', { selected: false }), choice('email', { destination_name: 'mail' })],
    });
    expect(columns.map((column) => column.target.name)).toEqual(['id', 'mail']);
  });

  test('a filter on an unloaded field reads the field and drops it', () => {
    const stream = {
      fields: [choice('age', { selected: false })],
      filters: [{ field: 'age', operator: 'gte', value: 30 }],
    };
    expect(plan(stream).extra.map((one) => one.path)).toEqual([['age']]);
    expect(
      run(stream, [
        ['1', 'x', '29'],
        ['2', 'y', '30'],
        ['3', 'z', null],
      ]),
    ).toEqual([['2', 'y']]);
  });

  test('without anything to do, the bytes stay untouched', () => {
    expect(plan({}).untouched).toBe(true);
    expect(plan({ fields: [choice('email', { masking: 'hash_sha256_salted' })] }).untouched).toBe(false);
  });

  test('a type that holds none of the values is refused, also where it was saved before', () => {
    const as = (destination_type: string) => plan({ fields: [choice('email', { destination_type })] });
    for (const type of ['boolean', 'json', 'array', 'binary']) {
      expect(() => as(type)).toThrow(`email: string cannot be written as ${type}`);
    }
    expect(as('integer').columns[1]?.target).toMatchObject({ type: 'integer', from: { type: 'string' } });
    expect(plan({ fields: [choice('email', { destination_type: 'json', masking: 'redact' })] }).columns).toHaveLength(
      3,
    );
  });

  test('a selected field or a key that is missing from the source is a schema change', () => {
    expect(() => plan({ fields: [choice('gone', {})] })).toThrow(SchemaChangedError);
    expect(() => plan({ primary_key: [['gone']] })).toThrow(SchemaChangedError);
  });
});

describe('filters', () => {
  const kept = (filter: Filter, cells: Cell[]) =>
    run(
      { filters: [filter] },
      cells.map((cell) => [filter.field === 'age' ? '0' : cell, cell, cell]),
    ).map((row) => (filter.field === 'age' ? row[2] : row[1]));
  test.each([
    ['eq', '10', ['10', '9'], ['10']],
    ['ne', '10', ['10', '9', null], ['9']],
    // As numbers, not as text: '9' is less than '10'.
    ['lt', 10, ['9', '10', '12345678901234567890'], ['9']],
    ['gt', '12345678901234567890', ['12345678901234567891', '12345678901234567889'], ['12345678901234567891']],
    ['in', [1, 2], ['1', '3', null], ['1']],
    ['not_in', [1, 2], ['1', '3', null], ['3']],
    ['between', [2, 3], ['1', '2', '3', '4'], ['2', '3']],
    ['is_null', null, ['1', null], [null]],
    ['is_not_null', null, ['1', null], ['1']],
  ] as const)('numbers: %s %p', (operator, value, cells, expected) => {
    expect(kept({ field: 'age', operator, value }, [...cells])).toEqual([...expected]);
  });
  test.each([
    ['contains', 'b', ['abc', 'xyz', null], ['abc']],
    ['starts_with', 'ab', ['abc', 'xab'], ['abc']],
    ['eq', '', ['', null], ['']],
  ] as const)('text: %s %p', (operator, value, cells, expected) => {
    expect(kept({ field: 'email', operator, value }, [...cells])).toEqual([...expected]);
  });
});

test.each([false, true])('a delete beside a filter carries nothing but its key (history: %p)', (history) => {
  const filters: Filter[] = [{ field: 'age', operator: 'gte', value: 18 }];
  const upsert = { operation: 'upsert' } as const;
  const mapped = createMapper(
    plan({ filters, primary_key: [['id']] }),
    { salted: salt, encrypted: salt },
    history,
  )({
    rows: [
      ['1', 'a@b.c', '30'],
      ['2', 'b@c.d', '3'],
      ['3', 'c@d.e', '40'],
    ],
    changes: [upsert, upsert, { operation: 'delete' }],
    bytes: 0,
  });
  const noLongerFits = history ? [] : [['2', null, null]];
  expect(mapped.rows).toEqual([['1', 'a@b.c', '30'], ...noLongerFits, ['3', null, null]]);
  expect(mapped.changes?.map(({ operation }) => operation)).toEqual([
    'upsert',
    ...noLongerFits.map(() => 'delete' as const),
    'delete',
  ]);
});

test('a history keeps what describes a change beside a filter, and filters deletes by it', () => {
  const logged = { ...schema, fields: [...schema.fields, ...changeFields(schema.fields)], change_log: true };
  const written = (...filters: Filter[]) => {
    const stream = { fields: [], filters, primary_key: [['id']], cursor_field: null };
    const planned = planTransfer({ source, schema: logged, stream: stream as never });
    const { rows } = createMapper(
      planned,
      { salted: salt, encrypted: salt },
      true,
    )({
      rows: [
        ['1', 'a@b.c', '30', 'insert', 'at', '0/1'],
        ['2', 'b@c.d', '3', 'update', 'at', '0/2'],
        ['3', 'c@d.e', '40', 'delete', 'at', '0/3'],
        [null, null, null, 'truncate', 'at', '0/4'],
      ],
      changes: [UPSERT, UPSERT, DELETE, TRUNCATE],
      bytes: 0,
    });
    return rows.map((row) => row.join(' '));
  };
  expect(written({ field: 'age', operator: 'gte', value: 18 })).toEqual([
    '1 a@b.c 30 insert at 0/1',
    '3   delete at 0/3',
    '   truncate at 0/4',
  ]);
  expect(written({ field: '_cdc_operation', operator: 'in', value: ['update', 'delete'] })).toEqual([
    '2 b@c.d 3 update at 0/2',
    '3   delete at 0/3',
  ]);
  expect(written({ field: '_cdc_lsn', operator: 'lt', value: '0/2' })).toEqual(['1 a@b.c 30 insert at 0/1']);
});
