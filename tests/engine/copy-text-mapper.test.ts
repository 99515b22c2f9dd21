import { describe, expect, test } from 'bun:test';
import type { Cell, Field, LogicalType } from '../../server/connectors/contract/connector.ts';
import { decodeCopyText, encodeCopyText } from '../../server/connectors/cells/copy-text.ts';
import { createCopyTextMapper } from '../../server/transfer/copy-text-mapper.ts';
import { fieldCipher } from '../../server/platform/field-encryption.ts';
import { createMapper } from '../../server/transfer/mapping.ts';
import type { TransferPlan } from '../../server/pipeline/transfer-plan.ts';

const salt = (value: string | Uint8Array) => new Bun.CryptoHasher('sha256', 'salt').update(value).digest('hex');
const KEYS = { salted: salt, encrypted: fieldCipher('a key of thirty-two characters..', 'account').encrypt };

const NASTY = [
  '',
  null,
  'plain',
  'tab\there',
  'line\nfeed',
  'back\\slash',
  '\\N',
  'ümläut ☃ 𝄞',
  "quote'",
  '\r',
  'a\\tb',
];
const rows = (): Cell[][] =>
  NASTY.flatMap((one, a) => NASTY.map((two, b) => [one, two, String(a * b), NASTY[(a + b) % NASTY.length] ?? null]));

const field = (type: LogicalType): Field => ({
  path: ['x'],
  type,
  source_type: null,
  dialect: null,
  nullable: true,
  is_primary_key: false,
  is_cursor_candidate: false,
});

function planOf(maskings: string[], filters: TransferPlan['filters'] = [], extra = 0): TransferPlan {
  const columns = maskings.map((masking) => ({
    field: field('string'),
    pushed: 'none',
    masking,
    target: { name: 'x', type: 'string', source_type: null, dialect: null, nullable: true },
  })) as TransferPlan['columns'];
  const extras = Array.from({ length: extra }, () => field('string'));
  return {
    columns,
    filters,
    pushed_filters: [],
    extra: extras,
    untouched: false,
    primary_key: [],
    cursor_column: null,
  };
}

/** The result of the row lane for the same rows. */
const byRows = (plan: TransferPlan) => createMapper(plan, KEYS)({ rows: rows(), bytes: 0 }).rows;

/** The result of COPY text, in pieces of `size` bytes. */
function byText(plan: TransferPlan, size: number): Cell[][] {
  const mapper = createCopyTextMapper(plan, KEYS);
  const bytes = encodeCopyText(rows(), () => {});
  const mapped: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += size) mapped.push(Buffer.from(mapper.map(bytes.subarray(at, at + size))));
  return decodeCopyText(Buffer.concat(mapped).toString('utf8'));
}

test('cells of any length keep every character but NUL, whichever way they are encoded', () => {
  const codes = Array.from({ length: 0x300 }, (_, code) => String.fromCharCode(code + 1));
  const cells = [0, 7, 30, 31, 32, 100].flatMap((length) =>
    [...codes, '€', '😀'].map((character) => 'a'.repeat(length) + character),
  );
  expect(decodeCopyText(encodeCopyText([cells, ['', null]], () => {}).toString('utf8'))).toEqual([cells, ['', null]]);
  expect(encodeCopyText([['a\0b']], () => {}).toString('utf8')).toBe('ab\n');
});

describe('mapping lines of COPY text gives the same result as mapping cells', () => {
  const numeric = { index: 2, field: field('integer'), filter: { field: 'x', operator: 'gte', value: 20 } as const };
  const text = { index: 3, field: field('string'), filter: { field: 'x', operator: 'contains', value: '\\' } as const };
  test.each([
    ['one column masked', planOf(['none', 'hash_sha256_salted', 'none', 'none'])],
    ['first and last masked', planOf(['redact', 'none', 'none', 'hash_sha256'])],
    ['all masked', planOf(['hash_sha256', 'redact', 'hash_sha256_salted', 'redact'])],
    ['filtered by a number', planOf(['redact', 'none', 'none', 'none'], [numeric])],
    ['filtered by text with escapes', planOf(['none', 'none', 'none', 'redact'], [text])],
    ['filtered by an unloaded column', planOf(['none', 'redact', 'none'], [text], 1)],
  ])('%s, for every size of the pieces', (_, plan) => {
    const expected = byRows(plan);
    expect(expected.length).toBeGreaterThan(0);
    for (const size of [1, 7, 100, 100_000]) expect(byText(plan, size)).toEqual(expected);
  });
});
