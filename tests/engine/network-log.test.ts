import { afterAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { eq } from 'drizzle-orm';
import { networkLogSegments, streamRuns } from '../../db/schema/index.ts';
import { NetworkLog } from '../../server/connector-runtime/network-log/network-log.ts';
import { recordingFetch } from '../../server/connector-runtime/recording-fetch.ts';
import { createRedactor } from '../../server/platform/redaction/redact.ts';
import { testDeps } from '../support/database.ts';
import { startHttpServer } from '../support/http-server.ts';
import { makePipeline } from '../support/pipeline.ts';

const service = await testDeps();
const { deps, account_id } = service;
const sample = { name: 'sample', parameters: {} };
const pipeline = await makePipeline(service, { source: sample, destination: sample });
const connection_run_id = await pipeline.start();
const [stream] = await deps.db.select().from(streamRuns).where(eq(streamRuns.connection_run_id, connection_run_id));

const page = (number: number) => ({
  method: 'GET',
  url: 'https://api.example.com/items',
  query: { page: String(number) },
  headers: { authorization: `Bearer ${Bun.randomUUIDv7()}` },
});

/** The stored entries of these requests; a string stands for a request without a response. */
const entriesOf = (requests: [ReturnType<typeof page>, number | string][]) =>
  logged([], async (log) => {
    for (const [request, outcome] of requests) {
      const pending = log.start(request);
      if (typeof outcome === 'string') pending.failed('request_failed', outcome);
      else pending.done({ status: outcome });
    }
  });

/** The stored entries of what `work` logs. */
async function logged(secrets: string[], work: (log: NetworkLog) => Promise<void>) {
  await deps.db.delete(networkLogSegments);
  const identity = { account_id, connection_run_id, stream_run_id: stream!.id, stream_name: 'items', attempt: 1 };
  const log = new NetworkLog(deps, { ...identity, connector_type: 'source' }, createRedactor(secrets));
  await work(log);
  await NetworkLog.close(deps.db, [log]);
  const [segment] = await deps.db.select().from(networkLogSegments);
  const bytes = (await deps.objects.get(segment!.object_key))!;
  return gunzipSync(await new Response(bytes).arrayBuffer())
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

describe('a network log entry links to the failed request it retries', () => {
  test('it is the last equal request, until one succeeds', async () => {
    const entries = await entriesOf([
      [page(1), 200],
      [page(2), 429],
      [page(2), 'reset'],
      [page(2), 200],
      [page(2), 200],
    ]);
    const [, limited, broken] = entries;
    expect(entries.map((entry) => entry.retry_of)).toEqual([null, null, limited.id, broken.id, null]);
  });

  test('it is never a different request in between', async () => {
    const other = { ...page(2), method: 'POST' };
    const entries = await entriesOf([
      [page(2), 503],
      [page(3), 200],
      [other, 200],
      [page(2), 200],
    ]);
    expect(entries.map((entry) => entry.retry_of)).toEqual([null, null, null, entries[0].id]);
  });
});

test('an entry has the fields that the guide documents, and no other', async () => {
  const guide = readFileSync(join(import.meta.dir, '../../server/docs/guides/operations/network-logs.md'), 'utf8');
  const documented = (row: string) => [...row.matchAll(/`(\w+)`/g)].map(([, name]) => name!);
  const rows = [...guide.matchAll(/^\| (`.*?) \| (.*) \|$/gm)].map(([, names, content]) => ({
    names: documented(names!),
    content: documented(content!),
  }));
  const [entry, failed] = await entriesOf([
    [page(1), 429],
    [page(2), 'reset'],
  ]);
  expect(Object.keys(entry).toSorted()).toEqual(rows.flatMap(({ names }) => names).toSorted());
  for (const part of ['request', 'response'])
    expect(rows.find(({ names }) => names[0] === part)!.content).toEqual(
      expect.arrayContaining(Object.keys(entry[part])),
    );
  expect(Object.keys(failed.error)).toEqual(rows.find(({ names }) => names[0] === 'error')!.content);
  expect(failed.response).toBeNull();
  const [segment] = await deps.db.select().from(networkLogSegments);
  expect(segment!.object_key).toBe(
    `network-logs/${account_id}/${connection_run_id}/${stream!.id}/source/${segment!.id}.jsonl.gz`,
  );
});

describe('the body of a response', () => {
  const secret = 'a-secret-of-this-source';
  const server = startHttpServer();
  afterAll(() => server.close());
  const responseTo = async (body: string) => {
    server.on('/items', () => new Response(body));
    const [entry] = await logged([secret], async (log) => {
      const allow = [new URL(server.url).host];
      const fetch = recordingFetch(log, AbortSignal.timeout(60_000), { allow, http: true });
      expect(await (await fetch(`${server.url}/items`)).text()).toBe(body);
    });
    return entry.response;
  };

  test.each([0, 65_536, 65_537, 73_728, 1_000_000])('of %i characters is cut after 65,536', async (length) => {
    const response = await responseTo('-'.repeat(length));
    expect(response.body).toBe('-'.repeat(Math.min(length, 65_536)));
    expect(response).toMatchObject({ body_bytes: length, body_truncated: length > 65_536 });
  });

  test.each([
    ['where it is cut', 65_536 - 8, ''],
    ['where its record ends', 73_728 - 8, ''],
    ['where its record ends, after many others', 73_728 - 8, secret.repeat(1000)],
  ])('shows no half of a secret %s', async (_, at, start) => {
    const { body } = await responseTo(`${start.padEnd(at, '-')}${secret}${'-'.repeat(100_000)}`);
    expect(body.length).toBeGreaterThan(10_000);
    expect(body).not.toContain('a-sec');
  });
});
