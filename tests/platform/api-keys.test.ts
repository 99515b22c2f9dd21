import { expect, test } from 'bun:test';
import { apiKeyPrefix, isMistyped, makeApiKey } from '../../server/platform/api-keys.ts';

test('keys have the documented form and are unique', () => {
  const keys = Array.from({ length: 1000 }, makeApiKey);
  for (const key of keys) expect(key).toMatch(/^dpm_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/);
  expect(new Set(keys).size).toBe(1000);
});

test('a key is not mistyped; with any character changed it is', () => {
  const key = makeApiKey();
  expect(isMistyped(key)).toBeFalse();
  for (let at = 4; at < key.length; at += 1) {
    if (at === 16) continue;
    expect(isMistyped(key.slice(0, at) + (key[at] === 'a' ? 'b' : 'a') + key.slice(at + 1))).toBeTrue();
  }
});

test('swapped neighbouring characters are detected', () => {
  const key = makeApiKey();
  const at = [...key].findIndex((char, index) => index > 17 && char !== key[index + 1]);
  expect(isMistyped(key.slice(0, at) + key[at + 1] + key[at] + key.slice(at + 2))).toBeTrue();
});

test('a string of another form is not reported as mistyped: it may be a BOOTSTRAP_API_KEY', () => {
  for (const key of ['', 'some-other-key-0123456789-0123456789', makeApiKey().slice(0, -1), `${makeApiKey()}x`]) {
    expect(isMistyped(key)).toBeFalse();
  }
});

test("the prefix reveals the key's ID and nothing of its secret", () => {
  const key = makeApiKey();
  expect(apiKeyPrefix(key)).toBe(key.slice(0, 16));
  expect(apiKeyPrefix('some-other-key-0123456789-0123456789')).toBe('some');
});
