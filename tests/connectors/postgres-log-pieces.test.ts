import { expect, test } from 'bun:test';
import { committedFacts } from '../../server/connectors/postgres/cdc/change-rows.ts';
import { CommitBytes } from '../../server/connectors/postgres/cdc/commit-bytes.ts';
import { ReadAhead } from '../../server/connectors/postgres/cdc/read-ahead.ts';

test('commits are known by the same bytes in lines as in rows', () => {
  const bytes = new CommitBytes();
  const second = 1_795_000_000_000_000;
  const commits: [time: number, lsn: number | bigint][] = [
    [second, 0x16b374d848],
    [second + 1, 0x16b374d849],
    [second + 999_999, 0x16ffffffff],
    [second + 10, 0x1600000000],
    [second + 10, 0x1700000000],
    [second + 1_000_000, 0x1700abcdef],
    [second - 1, 5],
    [second + 2, 2n ** 63n + 0xabcdefn],
    [second + 3, 2n ** 63n + 0xabcdf0n],
    [0, 0],
  ];
  for (const [commitTime, commitLsn] of commits) {
    const begun = { tag: 'begin', commitTime, commitLsn } as const;
    bytes.set(begun);
    const written = {
      _cdc_committed_at: bytes.of('_cdc_committed_at').toString(),
      _cdc_lsn: bytes.of('_cdc_lsn').toString(),
    };
    expect(written).toEqual(committedFacts(begun));
  }
});

test('a wait for the next piece of a log ends when the read is to end', async () => {
  const ahead = new ReadAhead();
  const source = Promise.withResolvers<void>();
  ahead.fill(
    (async function* () {
      yield Buffer.from('first');
      await source.promise;
      yield Buffer.from('second');
    })(),
  );
  const end = new AbortController();
  expect((await ahead.next(end.signal))?.toString()).toBe('first');
  const waiting = ahead.next(end.signal);
  end.abort();
  expect(await waiting).toBeNull();
  expect(ahead.isAtEnd).toBeFalse();
  source.resolve();
  expect((await ahead.next())?.toString()).toBe('second');
  expect(await ahead.next(end.signal)).toBeNull();
  expect(ahead.isAtEnd).toBeTrue();
});
