import { describe, expect, test } from 'bun:test';
import type { Cell, Field, LogicalType } from '../../server/connectors/contract/connector.ts';
import { decodeCopyText, encodeCopyText } from '../../server/connectors/cells/copy-text.ts';
import { canMapCopyBinary, CopyBinaryMapper } from '../../server/transfer/copy/binary-mapper.ts';
import { createCopyTextMapper } from '../../server/transfer/copy/text-mapper.ts';
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

describe('mapping a binary COPY gives the same result as mapping cells', () => {
  const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
  const TRAILER = Buffer.from([0xff, 0xff]);
  const typed = (maskings: string[], integer: string): TransferPlan => {
    const plan = planOf(maskings);
    const types = ['text', 'character varying(20)', integer, 'json'];
    for (const [at, column] of plan.columns.entries()) {
      column.field = { ...field(at === 2 ? 'integer' : 'string'), source_type: types[at]!, dialect: 'postgres' };
    }
    return plan;
  };
  const number = (type: string, text: string) => {
    const bytes = Buffer.alloc({ smallint: 2, integer: 4, bigint: 8 }[type]!);
    if (type === 'bigint') bytes.writeBigInt64BE(BigInt(text));
    else bytes.writeIntBE(Number(text), 0, bytes.length);
    return bytes;
  };
  const bytesOf = (plan: TransferPlan, row: Cell[]) =>
    row.map((cell, at) => {
      const { masking, field: source } = plan.columns[at]!;
      if (cell === null) return null;
      return source.type === 'integer' && masking === 'none' ? number(source.source_type!, cell) : Buffer.from(cell);
    });
  const encoded = (cells: (Buffer | null)[][]) => {
    const parts: Buffer[] = [SIGNATURE];
    for (const row of cells) {
      const count = Buffer.alloc(2);
      count.writeInt16BE(row.length);
      parts.push(count);
      for (const cell of row) {
        const length = Buffer.alloc(4);
        length.writeInt32BE(cell?.length ?? -1);
        parts.push(length, cell ?? Buffer.alloc(0));
      }
    }
    return Buffer.concat([...parts, TRAILER]);
  };
  const source = (plan: TransferPlan, cells: Cell[][]) => {
    const unmasked = { ...plan, columns: plan.columns.map((column) => ({ ...column, masking: 'none' as const })) };
    return encoded(cells.map((row) => bytesOf(unmasked, row)));
  };
  const inPieces = (plan: TransferPlan, bytes: Buffer, size: number) => {
    const mapper = new CopyBinaryMapper(plan, KEYS);
    const mapped: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; at += size) mapped.push(mapper.map(bytes.subarray(at, at + size)));
    return Buffer.concat(mapped);
  };

  const PLANS: [string, string[], string][] = [
    ['one column', ['none', 'hash_sha256_salted', 'none', 'none'], 'integer'],
    ['first and last', ['redact', 'none', 'none', 'encrypt'], 'smallint'],
    ['a number', ['none', 'none', 'hash_sha256_salted', 'none'], 'bigint'],
    ['all', ['hash_sha256', 'redact', 'hash_sha256_salted', 'encrypt'], 'integer'],
  ];
  test.each(PLANS)('%s masked, for every size of the pieces', (_, maskings, type) => {
    const plan = typed(maskings, type);
    expect(canMapCopyBinary(plan)).toBe(true);
    // Longer than what is looked at to complete a row, and longer than a piece.
    const long: Cell[] = ['ä'.repeat(9_000), 'b'.repeat(5_000), '-7', null];
    const cells = () => [...rows(), [...long], ...rows().slice(0, 9), [...long]];
    const expected = encoded(
      createMapper(plan, KEYS)({ rows: cells(), bytes: 0 }).rows.map((row) => bytesOf(plan, row)),
    );
    const bytes = source(plan, cells());
    for (const size of [1, 7, 100, 4_000, 30_000, 1_000_000]) expect(inPieces(plan, bytes, size)).toEqual(expected);
  });

  test('an empty copy stays as it is', () => {
    const plan = typed(['redact', 'none', 'none', 'none'], 'bigint');
    for (const size of [1, 100]) expect(inPieces(plan, encoded([]), size)).toEqual(encoded([]));
  });

  test('only where the texts of masked values can be had from their bytes', () => {
    const plan = typed(['redact', 'none', 'none', 'none'], 'bigint');
    for (const [type, can] of [
      ['text', true],
      ['text[]', false],
      ['jsonb', false],
      ['numeric(5,2)', false],
      ['character(3)', true],
    ] as const) {
      plan.columns[0]!.field = { ...field('string'), source_type: type };
      expect([type, canMapCopyBinary(plan)]).toEqual([type, can]);
    }
    expect(
      canMapCopyBinary({
        ...plan,
        filters: [{ index: 0, field: field('string'), filter: { field: 'x', operator: 'eq', value: '1' } }],
      }),
    ).toBe(false);
  });
});
