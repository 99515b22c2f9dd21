import { describe, expect, test } from 'bun:test';
import { openSecrets } from '../../server/platform/secrets.ts';

const secrets = openSecrets('one master key of the tests, 0123456789');
const others = openSecrets('another master key of the tests, 987654');
const CONTEXT = 'account_connector:a:1';
const invalid = expect.objectContaining({ status: 400, code: 'invalid_secret' });

const problem = (work: () => unknown): unknown => {
  try {
    work();
  } catch (error) {
    return error;
  }
  return null;
};

describe('sealed secrets', () => {
  test.each(['', 'pass word', 'é€😀\u0000', 'x'.repeat(100_000)])('can be opened again (%#)', (plaintext) => {
    expect(secrets.open(secrets.seal(plaintext, CONTEXT), CONTEXT)).toBe(plaintext);
  });

  test('are never alike and never reveal their content', () => {
    const blobs = [secrets.seal('hunter2hunter2', CONTEXT), secrets.seal('hunter2hunter2', CONTEXT)];
    expect(blobs[0]).not.toBe(blobs[1]);
    expect(blobs.join()).not.toInclude('hunter2');
    expect(Buffer.from(blobs[0]!.split('.')[3]!, 'base64url').toString('latin1')).not.toInclude('hunter2');
  });

  test('do not open in another context', () => {
    const blob = secrets.seal('secret', CONTEXT);
    expect(problem(() => secrets.open(blob, 'account_connector:a:2'))).toEqual(invalid);
    expect(problem(() => secrets.open(blob, ''))).toEqual(invalid);
  });

  test('do not open with any character changed', () => {
    const blob = secrets.seal('secret', CONTEXT);
    const changed = [...blob].map((old, at) => blob.slice(0, at) + (old === 'A' ? 'B' : 'A') + blob.slice(at + 1));
    // The last character has bits that base64 decoders ignore.
    const last = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'].map(
      (c) => blob.slice(0, -1) + c,
    );
    changed.push(...last.filter((one) => one !== blob));
    for (const one of changed) expect(problem(() => secrets.open(one, CONTEXT))).toEqual(invalid);
  });

  test('do not open with the content of another blob of the same context', () => {
    const [one, two] = ['one', 'two'].map((text) => secrets.seal(text, CONTEXT).split('.'));
    expect(problem(() => secrets.open([...one!.slice(0, 3), two![3]].join('.'), CONTEXT))).toEqual(invalid);
  });

  test('do not open with another master key, with an error that says so', () => {
    const error = problem(() => others.open(secrets.seal('secret', CONTEXT), CONTEXT));
    expect(error).toEqual(invalid);
    expect((error as Error).message).toInclude('SECRET_KEY');
  });

  test.each(['', 'v1', 'v1.0.0.0', 'v2.00000000.AAAA.AAAA', 'not ours at all', `v1.${'0'.repeat(8)}.AAAA.AAAA`])(
    'that are malformed are rejected: %s',
    (blob) => expect(problem(() => secrets.open(blob, CONTEXT))).toEqual(invalid),
  );
});

test('a hash depends on value, purpose and master key, and on nothing else', () => {
  const hash = secrets.hmac('api_key', 'value');
  expect(hash).toMatch(/^[0-9a-f]{64}$/);
  expect(secrets.hmac('api_key', 'value')).toBe(hash);
  expect(openSecrets('one master key of the tests, 0123456789').hmac('api_key', 'value')).toBe(hash);
  const different = [secrets.hmac('api_key', 'Value'), secrets.hmac('salt', 'value'), others.hmac('api_key', 'value')];
  expect(new Set([hash, ...different]).size).toBe(4);
});

test('the salted mask depends on value, account and master key, and on nothing else', () => {
  const mask = secrets.maskKeys('account').salted('value');
  expect(mask).toMatch(/^[0-9a-f]{64}$/);
  expect(secrets.maskKeys('account').salted(Buffer.from('value'))).toBe(mask);
  const different = [
    secrets.maskKeys('account').salted('Value'),
    secrets.maskKeys('another account').salted('value'),
    others.maskKeys('account').salted('value'),
    secrets.hmac('account', 'value'),
  ];
  expect(new Set([mask, ...different]).size).toBe(5);
});
