import { expect, test } from 'bun:test';
import { sharedLookups } from '../../db/share-lookups.ts';

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

function counted(find: (key: string) => Promise<string>) {
  const asked: string[] = [];
  const lookup = sharedLookups((key: string) => {
    asked.push(key);
    return find(key);
  });
  return { asked, lookup };
}

test('lookups of one key in one turn are one, those of other keys and later turns are not', async () => {
  let stored = 'before';
  const { asked, lookup } = counted(async (key) => `${key} ${stored}`);
  const first = await Promise.all([lookup('a'), lookup('b'), lookup('a')]);
  expect([first, asked]).toEqual([
    ['a before', 'b before', 'a before'],
    ['a', 'b'],
  ]);
  stored = 'after';
  await nextTurn();
  expect(await lookup('a')).toBe('a after');
});

test('a lookup that has been sent is not joined, however long it takes', async () => {
  const gates: ((found: string) => void)[] = [];
  const { asked, lookup } = counted(() => new Promise((resolve) => gates.push(resolve)));
  const early = lookup('a');
  await nextTurn();
  const late = lookup('a');
  expect(asked).toHaveLength(2);
  gates[0]!('valid');
  gates[1]!('revoked');
  expect(await Promise.all([early, late])).toEqual(['valid', 'revoked']);
});

test('all that share a lookup get its error, and the next turn asks again', async () => {
  let isDown = true;
  const { lookup } = counted(async () => {
    if (isDown) throw new Error('away');
    return 'back';
  });
  const both = await Promise.allSettled([lookup('a'), lookup('a')]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  isDown = false;
  await nextTurn();
  expect(await lookup('a')).toBe('back');
});
