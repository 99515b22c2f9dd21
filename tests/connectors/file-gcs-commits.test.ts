import { afterAll, expect, test } from 'bun:test';
import { parseParameters } from '../../server/connectors/contract/parameters.ts';
import { fileDestination } from '../../server/connectors/file/destination.ts';
import { startGcs } from '../support/gcs.ts';
import { limitHangs } from '../support/hangs.ts';
import { remoteContext } from './file-support.ts';
import { objectPlace, openUploads, testCommits, testDroppedUpload, WIDE_ROWS, wideBatch } from './table-commits.ts';

limitHangs();

const gcs = await startGcs();
afterAll(() => gcs.close());

const place = (more: object = {}) =>
  objectPlace({ settings: gcs.settings, more, keys: (prefix) => gcs.keys(prefix), uploads: openUploads(gcs) });

testCommits(place, { least: 15, tried: 8 });
testDroppedUpload(place, gcs);

test('a token that ends during an upload is renewed, and parts arrive in order', async () => {
  const here = place();
  const writer = await here.open({ fence: 1 });
  for (let from = 0; from < WIDE_ROWS; from += 20_000) {
    await writer.write(wideBatch(from, from + 20_000));
    if (from === 20_000) gcs.endTokens();
  }
  await writer.finish(null);
  const rows = await here.rows();
  expect([rows.length, new Set(rows).size]).toEqual([WIDE_ROWS, WIDE_ROWS]);
  here.cleanUp();
});

test('the connection test writes, uploads in parts and deletes, and errors have classes and codes', async () => {
  const check = async (more: object) => {
    const { ctx, recorded, cleanUp } = remoteContext(
      { ...gcs.settings, path: 'checked', ...more },
      { destination: true },
    );
    const result = await fileDestination.check({ ...ctx, now: () => new Date() } as never).then(
      ({ checks }) => checks.map(({ title, status }) => `${title} ${status}`),
      (error: { code: string }) => error.code,
    );
    cleanUp();
    expect(JSON.stringify(recorded)).not.toContain('BEGIN PRIVATE KEY');
    return result;
  };
  const steps = ['Bucket', 'Write', 'Multipart upload', 'Delete'];
  expect(await check({})).toEqual(steps.map((step) => `${step} passed`));
  expect(await gcs.keys('checked/')).toEqual([]);
  expect(await check({ bucket: 'none' })).toBe('bucket_not_found');
  expect(await check({ service_account_key: 'no JSON' })).toBe('service_account_key_invalid');
});

test('the settings of a destination need a bucket and a key', () => {
  const parsed = parseParameters(fileDestination, { location: 'gcs' });
  const missing = 'problems' in parsed ? parsed.problems.map(({ parameter }) => parameter) : [];
  expect(missing).toEqual(['bucket', 'service_account_key']);
});
