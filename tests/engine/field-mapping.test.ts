import { describe, expect, test } from 'bun:test';
import type { Field } from '../../server/connectors/contract/connector.ts';
import { type FieldMapping, fieldChange, mappedFields, mappedTarget } from '../../server/pipeline/field-mapping.ts';
import { createMapper } from '../../server/transfer/mapping.ts';
import { planTransfer } from '../../server/pipeline/transfer-plan.ts';

const mapping = (more: Partial<FieldMapping>): FieldMapping => ({
  source_field: 'email',
  destination_field: 'mail',
  is_match_key: false,
  transform: 'none',
  constant_value: null,
  ...more,
});
const field = (name: string, type: Field['type'] = 'string'): Field => ({
  path: name.split('.'),
  type,
  source_type: 'of the source',
  dialect: 'its own',
  nullable: true,
  is_primary_key: false,
  is_cursor_candidate: false,
});
const schema = {
  name: 'users',
  fields: [field('id', 'integer'), field('email'), field('at', 'timestamp_tz')],
} as never;

describe('a mapping changes values', () => {
  test.each([
    ['lowercase', 'ÄB c', 'äb c'],
    ['uppercase', 'straße', 'STRASSE'],
    ['trim', '\t a b \n', 'a b'],
    ['sha256', 'a', 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb'],
    ['date_iso', '2026-01-31', '2026-01-31'],
    ['date_iso', '2026-01-31 23:59:59.120000+02', '2026-01-31T21:59:59.12Z'],
    ['number', ' +007.50 ', '7.50'],
    ['number', '-.5', '-0.5'],
    ['number', '12345678901234567890.123456789', '12345678901234567890.123456789'],
    ['number', '1e5', '1e5'],
    ['number', '000', '0'],
  ] as const)('%s of %p', (transform, cell, wanted) => {
    expect(fieldChange(mapping({ transform }))?.(cell)).toBe(wanted);
    expect(fieldChange(mapping({ transform }))?.(null)).toBeNull();
  });

  test.each([
    ['number', 'twelve'],
    ['number', ''],
    ['number', '1,5'],
    ['date_iso', 'yesterday'],
  ] as const)('%s of %p fails and names the field', (transform, cell) => {
    expect(() => fieldChange(mapping({ transform }))?.(cell)).toThrow(/email/);
  });
});

test('the mapping alone decides which fields exist; an untransformed field keeps its source type', () => {
  const mapped = mappedFields(schema, [
    mapping({}),
    mapping({ source_field: 'at', transform: 'date_iso' }),
    mapping({ source_field: 'no', constant_value: 'x' }),
  ]);
  expect(mapped.map(mappedTarget)).toMatchObject([
    { name: 'mail', type: 'string', source_type: 'of the source', nullable: true },
    { name: 'mail', type: 'string', source_type: null },
    { name: 'mail', type: 'string', nullable: false },
  ]);
  expect(() => mappedFields(schema, [mapping({ source_field: 'gone' })])).toThrow(/Field gone of .* no longer exists/);
});

test('filters see source values, masks apply after the mapping, constants are the same in every row', () => {
  const stream = {
    fields: [{ path: ['email'], selected: true, destination_name: null, destination_type: null, masking: 'redact' }],
    filters: [{ field: 'email', operator: 'starts_with', value: 'A' }],
    mapping: [
      mapping({ source_field: 'id', destination_field: 'key', is_match_key: true }),
      mapping({ transform: 'lowercase' }),
      mapping({ source_field: 'nothing', destination_field: 'origin', constant_value: '' }),
    ],
    sync_mode: 'full_refresh',
    cursor_field: null,
    primary_key: null,
  } as never;
  const source = { pushdown: { masking: [], filters: false } } as never;
  const plan = planTransfer({ source, schema, stream });
  expect(plan).toMatchObject({ primary_key: ['key'], untouched: false });
  const read = (id: string, email: string | null) => [id, email, id, email];
  const rows = [read('1', 'A@b'), read('2', 'x@y'), read('3', null)];
  expect(createMapper(plan, { salted: String, encrypted: String })({ rows, bytes: 1 }).rows).toEqual([
    ['1', '***', ''],
  ]);
});
