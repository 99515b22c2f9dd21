import { describe, expect, test } from 'bun:test';
import { createHash, createHmac } from 'node:crypto';
import { hmacDigest, sha256Digest } from '../../server/platform/digests.ts';
import { CopyBinaryMapper } from '../../server/transfer/copy/binary-mapper.ts';
import type { TransferPlan } from '../../server/pipeline/transfer-plan.ts';
import { openSecrets } from '../../server/platform/secrets.ts';
import { SIGNATURE, TRAILER } from '../../server/connectors/cells/copy-binary.ts';

const KEYS = openSecrets('a root key of thirty-two characters').maskKeys('account');
/** Short, empty and absent values, one without a view of its length in the hasher, and one for a hasher of its own. */
const VALUES = ['a@b.c', '', null, 'é', 'x'.repeat(1024), 'x'.repeat(1025), 'y'.repeat(70_000)];

/** A row with a number and a text. */
function row(id: number, text: string | null): Buffer {
  const bytes = Buffer.from(text ?? '');
  const head = Buffer.alloc(2 + 4 + 4 + 4);
  head.writeInt32BE(id, head.writeInt32BE(4, head.writeInt16BE(2)));
  head.writeInt32BE(text === null ? -1 : bytes.length, 10);
  return Buffer.concat([head, bytes]);
}

const copyOf = (rows: readonly (string | null)[]) =>
  Buffer.concat([SIGNATURE, ...rows.map((text, id) => row(id, text)), TRAILER]);

function planOf(masking: string): TransferPlan {
  const column = (name: string, source_type: string, mask: string) => ({
    mapping: null,
    masking: mask,
    field: { source_type },
    target: { name },
  });
  const columns = [column('id', 'integer', 'none'), column('text', 'text', masking)];
  return { columns, filters: [], extra: [] } as unknown as TransferPlan;
}

describe.each(['hash_sha256', 'hash_sha256_salted', 'redact', 'encrypt'])('%s', (masking) => {
  const masks: Record<string, (text: string) => string> = {
    hash_sha256: (text) => createHash('sha256').update(text).digest('hex'),
    hash_sha256_salted: KEYS.salted,
    redact: () => '***',
    encrypt: KEYS.encrypted,
  };
  const masked = copyOf(VALUES.map((text) => (text === null ? null : masks[masking]!(text))));

  test.each([1, 7, 500, 10_000, 1_000_000])('pieces of %d bytes', (size) => {
    const mapper = new CopyBinaryMapper(planOf(masking), KEYS);
    const given = copyOf(VALUES);
    const out: Uint8Array[] = [];
    for (let at = 0; at < given.length; at += size) out.push(mapper.map(given.subarray(at, at + size)).slice());
    expect(Buffer.concat(out).equals(masked)).toBe(true);
  });
});

test.each([0, 1, 64, 1024, 1025])('digests of %d bytes in a longer input', (length) => {
  const input = Buffer.from('-'.repeat(5) + 'v'.repeat(length) + '-'.repeat(5));
  const value = 'v'.repeat(length);
  const key = Buffer.from('k'.repeat(32));
  const hex = (digest: Uint8Array) => Buffer.from(digest).toString('hex');
  expect(hex(sha256Digest()(input, 5, 5 + length))).toBe(createHash('sha256').update(value).digest('hex'));
  expect(hex(hmacDigest(key)(input, 5, 5 + length))).toBe(createHmac('sha256', key).update(value).digest('hex'));
});
