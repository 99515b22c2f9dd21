import { expect, test } from 'bun:test';
import { generateSshKey, publicKeyOf } from '../../server/platform/ssh-keys.ts';

test('every key that is made can be read, also the one in 256 whose public half begins with zero', () => {
  for (let made = 0; made < 2000; made += 1) {
    const { private_key, public_key, fingerprint } = generateSshKey('test');
    expect(publicKeyOf(private_key)).toEqual({ public_key, fingerprint });
  }
});
