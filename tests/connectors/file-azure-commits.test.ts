import { afterAll, expect, test } from 'bun:test';
import { parseParameters } from '../../server/connectors/contract/parameters.ts';
import { fileDestination } from '../../server/connectors/file/destination.ts';
import { blobsOf } from '../../server/connectors/kits/files/stores/azure/files.ts';
import { Container } from '../../server/connectors/kits/files/stores/azure/container.ts';
import { startAzure } from '../support/azurite.ts';
import { limitHangs } from '../support/hangs.ts';
import { remoteContext } from './file-support.ts';
import { load, objectPlace, testCommits, testDroppedUpload, WIDE_ROWS, wideBatch } from './table-commits.ts';

limitHangs();

const azure = await startAzure();
afterAll(() => azure.close());
const { account_key: _, ...keyless } = azure.settings;

const contextFor = (settings: object, more: Parameters<typeof remoteContext>[1] = {}) => {
  const made = remoteContext(settings, more);
  // The clock of the fixtures is not the emulator's.
  return { ...made, ctx: { ...made.ctx, now: () => new Date() } };
};

async function keys(prefix: string): Promise<string[]> {
  const { ctx, cleanUp } = contextFor({ ...azure.settings, path: 'x' });
  const found = await Array.fromAsync(blobsOf(new Container(ctx), prefix));
  cleanUp();
  return found.map(({ key }) => key);
}

async function get(key: string): Promise<string> {
  const { ctx, cleanUp } = contextFor({ ...azure.settings, path: 'x' });
  const answer = await new Container(ctx).send({ blob: key });
  cleanUp();
  return answer.text();
}

const place = (more: object = {}, settings: Record<string, unknown> = azure.settings) =>
  objectPlace({ settings, more, keys });

testCommits(place, { least: 13, tried: 6 });
testDroppedUpload(place, { keys, get, put: (key, text) => azure.put(key, text) });

test('an overwrite in several blocks, with a shared access signature, replaces every row', async () => {
  const here = place({}, { ...keyless, sas_token: azure.sas('rlcwd') });
  await load(here.open({ fence: 1 }));
  const writer = await here.open({ fence: 2, mode: 'overwrite', stream_run_id: 'other' });
  for (let from = 0; from < WIDE_ROWS; from += 20_000) await writer.write(wideBatch(from, from + 20_000));
  await writer.finish(null);
  const rows = await here.rows();
  expect([rows.length, new Set(rows).size]).toEqual([WIDE_ROWS, WIDE_ROWS]);
  here.cleanUp();
});

test('the connection test names the right that a signature lacks', async () => {
  const check = async (settings: object) => {
    const { ctx, cleanUp } = contextFor({ ...settings, path: 'checked', format: 'jsonl' }, { destination: true });
    const { checks } = await fileDestination.check(ctx as never, { schema: null });
    cleanUp();
    return checks.map(({ title, status }) => `${title}: ${status}`);
  };
  expect(await check(azure.settings)).toEqual(['Container: passed', 'Write: passed', 'Delete: passed']);
  expect(await check({ ...keyless, sas_token: azure.sas('rlcw') })).toEqual([
    'Container: passed',
    'Write: passed',
    'Delete: failed',
  ]);
  expect(await check({ ...keyless, sas_token: azure.sas('rl') })).toContain('Write: failed');
});

test('the settings of a destination need an account, and a key or a signature', () => {
  const parsed = parseParameters(fileDestination, { location: 'azure', bucket: 'data' });
  const missing = 'problems' in parsed ? parsed.problems.map(({ parameter }) => parameter) : [];
  expect(missing).toEqual(['storage_account', 'account_key']);
});
