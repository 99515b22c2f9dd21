import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { fieldCipher } from '../../server/platform/field-encryption.ts';
import { openSecrets } from '../../server/platform/secrets.ts';

const KEY = 'a secret key that only the tests use, 0123456789';
const ACCOUNT = '01900000-0000-7000-8000-000000000001';
const { encrypt, decrypt } = fieldCipher(KEY, ACCOUNT);

test.each(['', 'a', 'Äpfel ☃ 🎉', 'x'.repeat(100_000), '\\x00ff', 'two\nlines'])(
  '%j is decrypted unchanged',
  (value) => {
    const sealed = encrypt(value);
    expect(sealed).toMatch(/^enc\.v1\.[\w-]+$/);
    expect(value === '' || !sealed.includes(value)).toBe(true);
    expect(decrypt(sealed)).toBe(value);
    expect(encrypt(new TextEncoder().encode(value))).toBe(sealed);
  },
);

test('equal values have equal ciphertexts, others share nothing', () => {
  expect(encrypt('ann')).toBe(encrypt('ann'));
  expect(encrypt('ann').slice(7, 23)).not.toBe(encrypt('anna').slice(7, 23));
});

test('decryption fails with another account, another key, or a changed character', () => {
  const sealed = encrypt('ann@example.com');
  expect(() => fieldCipher(KEY, 'another').decrypt(sealed)).toThrow();
  expect(() => fieldCipher(`${KEY}x`, ACCOUNT).decrypt(sealed)).toThrow();
  for (const at of [8, 25, sealed.length - 5]) {
    const changed = sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1);
    expect(() => decrypt(changed)).toThrow();
  }
});

test('all keys of an account mask with the same cipher', () => {
  expect(decrypt(openSecrets(KEY).maskKeys(ACCOUNT).encrypted('ann'))).toBe('ann');
});

test('the command decrypts whole files, and reports what it could not decrypt', async () => {
  const foreign = fieldCipher(KEY, 'another').encrypt('secret');
  const input = `id,email\n1,${encrypt('ann@example.com')}\n2,"${encrypt('bob')}",${foreign}\n`;
  const run = async (text: string) => {
    const script = join(import.meta.dir, '../../server/process/commands/decrypt-fields.ts');
    const child = Bun.spawn([process.execPath, script, ACCOUNT], {
      stdin: new Blob([text]),
      stdout: 'pipe',
      stderr: 'pipe',
      env: { PATH: process.env.PATH!, SECRET_KEY: KEY },
    });
    return { out: await new Response(child.stdout).text(), code: await child.exited };
  };
  expect(await run(input)).toEqual({ out: `id,email\n1,ann@example.com\n2,"bob",${foreign}\n`, code: 1 });
  expect(await run(`1,${encrypt('x')}\n`)).toEqual({ out: '1,x\n', code: 0 });
});
