import { describe, expect, test } from 'bun:test';
import {
  type AnyDestination,
  type AnySource,
  type Field,
  LOGICAL_TYPES,
  type LogicalType,
  type StreamSchema,
} from '../../server/connectors/contract/connector.ts';
import { changeFields } from '../../server/connectors/contract/change-fields.ts';
import { findConnector } from '../../server/connectors/registry.ts';
import { checkStream } from '../../server/pipeline/stream-check/check.ts';
import { FINDING_CODES } from '../../server/pipeline/stream-check/finding.ts';
import type { StreamSettings } from '../../server/pipeline/stream-check/settings.ts';
import { ERROR_CODES } from '../../server/platform/error-codes.ts';
import { checkTables, type ForeignTable, type ReadTable } from '../../server/pipeline/stream-check/tables.ts';

const source = findConnector('source', 'postgres') as AnySource;
const destinationOf = (name: string) => findConnector('destination', name) as AnyDestination;

const field = (name: string, type: LogicalType, rest: Partial<Field> = {}): Field => ({
  path: name.split('.'),
  type,
  source_type: null,
  dialect: null,
  nullable: true,
  is_primary_key: name === 'id',
  is_cursor_candidate: false,
  ...rest,
});
const stream: StreamSchema = {
  namespace: null,
  name: 'people',
  description: null,
  fields: [
    ...LOGICAL_TYPES.map((type) => field(`a_${type}`, type)),
    field('id', 'integer'),
    field('email', 'string'),
    field('nickname', 'string', { inexact_order: true }),
    field('at', 'timestamp_tz'),
  ],
  supported_sync_modes: ['full_refresh', 'incremental'],
  source_defined_cursor: false,
  default_cursor_field: null,
  source_defined_primary_key: null,
  is_resumable: true,
  supports_date_window: true,
  suggested: true,
};
const PLAIN: StreamSettings = {
  selected: true,
  sync_mode: 'full_refresh',
  destination_sync_mode: 'append',
  cursor_field: null,
  primary_key: null,
  destination_table: null,
  shared_destination_table: false,
  backfill_days: null,
  fields: [],
  filters: [],
  dataset_sql: null,
  mapping: null,
};
const MERGED: Partial<StreamSettings> = {
  sync_mode: 'incremental',
  destination_sync_mode: 'append_dedup',
  cursor_field: ['at'],
  primary_key: [['id']],
};
const choice = (name: string, rest: Partial<StreamSettings['fields'][number]> = {}) => ({
  path: [name],
  selected: true,
  destination_name: null,
  destination_type: null,
  masking: 'none' as const,
  ...rest,
});

interface Check {
  destination?: string;
  overrides?: Parameters<typeof checkStream>[1]['overrides'];
  fields?: Field[];
  change_log?: boolean;
  reverse_etl?: boolean;
}
/** The findings as `code place`. */
function findingsOf(settings: Partial<StreamSettings>, check: Check = {}): string[] {
  const about = {
    stream: { ...stream, fields: check.fields ?? stream.fields, change_log: check.change_log ?? false },
    overrides: check.overrides ?? {},
    source,
    destination: destinationOf(check.destination ?? 'postgres'),
    reverse_etl: check.reverse_etl ?? false,
  };
  const findings = checkStream({ ...PLAIN, ...settings }, about);
  for (const { code, message } of findings) {
    expect(FINDING_CODES).toContain(code);
    expect(ERROR_CODES).toContain(code);
    expect(message.length).toBeGreaterThan(10);
  }
  return findings.map(({ code, place }) => `${code} ${place.join('.')}`);
}

describe('filters are checked by operator and type', () => {
  const of = (name: string, operator: string, value?: unknown) =>
    findingsOf({ filters: [{ field: name, operator, value }] as StreamSettings['filters'] });

  // tests/connectors/filters.test.ts has the table of operands by type.
  const cases: [operator: string, good: unknown[], bad: unknown[]][] = [
    ['eq', [5, '5', '9007199254740993', 9007199254740991], [undefined, null, [], [5], 'abc', 1.5, 9007199254740992]],
    ['gt', [5], [undefined, null, [5], 'abc', true]],
    ['between', [[1, 2]], [undefined, null, 5, [], [5], [1, 2, 3], ['a', 'b']]],
    ['in', [[1], [1, '2']], [undefined, null, 5, [], ['x'], [1, 'x']]],
    ['not_in', [[1]], [undefined, null, 5, []]],
    ['is_null', [undefined, null], [5, '', false, []]],
    ['is_not_null', [undefined, null], [5]],
  ];
  test.each(cases)('%s', (operator, good, bad) => {
    for (const value of good) expect([value, of('id', operator, value)]).toEqual([value, []]);
    for (const value of bad) {
      expect([value, of('id', operator, value)]).toEqual([value, ['invalid_filter filters.0.value']]);
    }
  });

  test('what describes a change filters only streams that keep every change', () => {
    const logged = { fields: [...stream.fields, ...changeFields(stream.fields)], change_log: true };
    const filters: StreamSettings['filters'] = [{ field: '_cdc_operation', operator: 'ne', value: 'delete' }];
    const found = (destination_sync_mode: StreamSettings['destination_sync_mode'], check: Check = logged) =>
      findingsOf({ ...MERGED, destination_sync_mode, filters }, check);
    expect(found('append')).toEqual([]);
    for (const mode of ['append_dedup', 'soft_delete', 'update'] as const) {
      expect(found(mode)).toEqual(['invalid_filter filters.0.field']);
    }
    // A column of the table that has such a name.
    const own = { ...stream.fields[0]!, path: ['_cdc_operation'], type: 'string' as const, source_type: 'text' };
    expect(found('append_dedup', { ...logged, fields: [...stream.fields, own] })).toEqual([]);
  });

  test('numbers that JSON may have rounded are refused', () => {
    expect(of('id', 'in', [1, 9007199254740992])).toEqual(['invalid_filter filters.0.value.1']);
    expect(of('a_number', 'eq', 0.12345678901234568)).toEqual(['invalid_filter filters.0.value']);
    expect(of('a_number', 'eq', '0.12345678901234568')).toEqual([]);
  });

  test('operators that the type does not have', () => {
    expect(of('a_json', 'is_null')).toEqual([]);
    expect(of('a_json', 'gt', 'x')).toEqual(['invalid_filter filters.0.operator']);
  });
});

describe('types, masks, keys and cursors', () => {
  const cases: [what: string, settings: Partial<StreamSettings>, expected: string[], check?: Check][] = [
    ['a type that the conversion has', { fields: [choice('email', { destination_type: 'integer' })] }, []],
    [
      'a type that it has not',
      { fields: [choice('email', { destination_type: 'json' })] },
      ['type_incompatible fields.0.destination_type'],
    ],
    ['a type of a masked field', { fields: [choice('id', { destination_type: 'date', masking: 'redact' })] }, []],
    [
      'one field twice',
      { fields: [choice('email'), choice('email', { masking: 'redact' })] },
      ['duplicate_field fields.1.path'],
    ],
    [
      'a key that redact makes one',
      { ...MERGED, fields: [choice('id', { masking: 'redact' })] },
      ['unfit_mask fields.0.masking'],
    ],
    ['a key that the catalog redacts', MERGED, ['unfit_mask fields'], { overrides: { id: { masking: 'redact' } } }],
    ['a key whose mask keeps rows apart', { ...MERGED, fields: [choice('id', { masking: 'encrypt' })] }, []],
    ['append needs no key', { primary_key: [['id']], fields: [choice('id', { masking: 'redact' })] }, []],
    ['json as a key', { ...MERGED, primary_key: [['a_json']] }, ['unfit_key primary_key']],
    [
      'a masked cursor of a merge',
      { ...MERGED, fields: [choice('at', { masking: 'hash_sha256' })] },
      ['unfit_mask fields.0.masking'],
    ],
    [
      'a numeric cursor of a merge as text',
      { ...MERGED, cursor_field: ['a_integer'], fields: [choice('a_integer', { destination_type: 'string' })] },
      ['unfit_cursor fields.0.destination_type'],
    ],
    [
      'a masked cursor of append',
      { ...MERGED, destination_sync_mode: 'append', fields: [choice('at', { masking: 'redact' })] },
      [],
    ],
    ['a cursor without an order', { ...MERGED, cursor_field: ['a_boolean'] }, ['unfit_cursor cursor_field']],
    ['a cursor without an exact order', { ...MERGED, cursor_field: ['nickname'] }, ['unfit_cursor cursor_field']],
    ['the same field as a mere column', MERGED, []],
    [
      'a match key that is constant',
      {
        mapping: [
          { source_field: 'id', destination_field: 'key', is_match_key: true, transform: 'none', constant_value: 'x' },
        ],
        sync_mode: 'incremental',
        destination_sync_mode: 'append_dedup',
        cursor_field: ['at'],
      },
      ['unfit_key mapping.0.constant_value'],
      { destination: 'http', reverse_etl: true },
    ],
    [
      'several at once, each with its place',
      {
        fields: [choice('email', { destination_type: 'json' }), choice('gone')],
        filters: [{ field: 'id', operator: 'gt', value: 'abc' }],
      },
      ['unknown_field fields.1.path', 'type_incompatible fields.0.destination_type', 'invalid_filter filters.0.value'],
    ],
    ['a stream that is not selected', { selected: false, filters: [{ field: 'id', operator: 'eq', value: null }] }, []],
  ];
  for (const [what, settings, expected, check] of cases) {
    test(what, () => expect(findingsOf(settings, check)).toEqual(expected));
  }
});

describe('columns that the destination does not distinguish or store', () => {
  const long = (end: string) => `${'ä'.repeat(31)}${end}`;
  const cases: [destination: string, names: string[], expected: string[]][] = [
    ['postgres', ['Foo', 'foo'], []],
    ['duckdb', ['Foo', 'foo'], ['duplicate_destination_column fields']],
    ['mysql', ['Foo', 'foo'], ['duplicate_destination_column fields']],
    ['http', ['Foo', 'foo'], []],
    ['postgres', [long('a')], []],
    ['postgres', [long('ab')], ['name_too_long fields']],
    ['mysql', [long('ab'), 'b'.repeat(65)], ['name_too_long fields']],
    ['duckdb', ['b'.repeat(300)], []],
    ['mysql', ['blank '], ['invalid_name fields']],
    ['postgres', ['ctid', 'XMIN', 'oid'], ['reserved_name fields']],
    ['mysql', ['db_trx_id', 'xmin'], ['reserved_name fields']],
    ['duckdb', ['xmin', 'rowid', 'db_trx_id'], []],
  ];
  test.each(cases)('%s: %j', (destination, names, expected) => {
    const fields = names.map((name) => field(name, 'string'));
    expect(findingsOf({}, { destination, fields })).toEqual(expected);
  });

  test('by the names that the settings give', () => {
    const renamed = [choice('email'), choice('id', { destination_name: 'EMAIL' })];
    expect(findingsOf({ fields: renamed }, { destination: 'duckdb' })).toEqual([
      'duplicate_destination_column fields.0.destination_name',
    ]);
    const marks = { destination_sync_mode: 'soft_delete' as const, primary_key: [['id']] };
    const deleted = [choice('email', { destination_name: '_deleted_at' })];
    expect(findingsOf({ ...marks, fields: deleted })).toEqual([
      'duplicate_destination_column fields.0.destination_name',
    ]);
  });
});

describe('tables of several streams', () => {
  const table = (name: string, rest: object = {}) => ({
    stream_name: name,
    schema: 'public',
    table: name,
    shared: false,
    ...rest,
  });
  const foreign = (name: string, rest: object = {}): ForeignTable => ({
    ...table(name),
    connection_id: 'other',
    connection_name: 'Other',
    ...rest,
  });
  const find = (
    own: ReturnType<typeof table>[],
    others: ForeignTable[] = [],
    rest: { destination?: string; unchecked?: number[]; read?: ReadTable[] } = {},
  ) =>
    checkTables(own, {
      names: destinationOf(rest.destination ?? 'postgres').names!,
      foreign: others,
      read: rest.read ?? [],
      isChecked: (at) => !rest.unchecked?.includes(at),
    }).map(({ code, stream: at, context }) => [code, at, context.connection_id ?? null]);

  const taken = 'duplicate_destination_table';
  test('one finding for two streams of one table, on the one that can still change', () => {
    expect(find([table('a'), table('b')])).toEqual([]);
    expect(find([table('a'), table('b', { table: 'a' })])).toEqual([[taken, 1, null]]);
    expect(find([table('a'), table('b', { table: 'a' })], [], { unchecked: [1] })).toEqual([[taken, 0, null]]);
    expect(find([table('a'), table('b', { table: 'A' })])).toEqual([]);
    for (const destination of ['duckdb', 'mysql']) {
      expect(find([table('a'), table('b', { table: 'A' })], [], { destination })).toEqual([[taken, 1, null]]);
    }
  });

  test('streams share a table only if each of them says so', () => {
    const both = [table('a', { shared: true }), table('b', { table: 'a', shared: true })];
    expect(find(both)).toEqual([]);
    expect(find([both[0]!, { ...both[1]!, shared: false }])).toEqual([[taken, 1, null]]);
    expect(find([{ ...both[0]!, shared: false }, both[1]!])).toEqual([[taken, 0, null]]);
  });

  test('tables that the connection reads itself', () => {
    const read: ReadTable[] = [{ stream_name: 'b', schema: 'public', table: 'b' }];
    expect(find([table('a'), table('b', { table: 'copy' })], [], { read })).toEqual([]);
    expect(find([table('b')], [], { read })).toEqual([[taken, 0, null]]);
    expect(find([table('a', { table: 'b', shared: true })], [], { read })).toEqual([[taken, 0, null]]);
    expect(find([table('b', { schema: 'copies' })], [], { read })).toEqual([]);
    expect(find([table('B')], [], { read, destination: 'mysql' })).toEqual([[taken, 0, null]]);
  });

  test('tables of other connections', () => {
    expect(find([table('a')], [foreign('a')])).toEqual([[taken, 0, 'other']]);
    expect(find([table('a')], [foreign('a')], { unchecked: [0] })).toEqual([]);
    expect(find([table('a', { shared: true })], [foreign('a')])).toEqual([]);
    expect(find([table('a')], [foreign('a', { schema: 'sales' })])).toEqual([]);
    expect(find([table('a'.repeat(64))])).toEqual([['name_too_long', 0, null]]);
  });

  test('the message names the table with its schema, where the destination has schemas', () => {
    const messages = (schema: string) => {
      const rest = { names: destinationOf('postgres').names!, isChecked: () => true };
      const a = table('a', { schema });
      const all = [
        checkTables([a], { ...rest, foreign: [foreign('a', { schema })], read: [] }),
        checkTables([a], { ...rest, foreign: [], read: [a] }),
        checkTables([a, { ...a, stream_name: 'b' }], { ...rest, foreign: [], read: [] }),
      ];
      return all.map(([one]) => one!.message.split('. ')[0]);
    };
    expect(messages('sales')).toEqual([
      'the connection "Other" writes "a" to "sales.a" as well',
      '"a" is read from the table "sales.a" itself',
      '"a" is written to "sales.a" as well',
    ]);
    expect(messages('')).toContain('"a" is written to "a" as well');
  });
});
