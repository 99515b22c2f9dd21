import { afterAll, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConnectorContext, RequestRecord } from '../../server/connectors/contract/connector.ts';
import * as errors from '../../server/connectors/contract/errors.ts';
import { FAULTS, type Fault } from '../../server/connectors/sample/faults.ts';
import { SampleSourceConfig, sampleSource } from '../../server/connectors/sample/source.ts';
import { until } from '../support/until.ts';
import { requestOf } from './reading.ts';

const root = mkdtempSync(join(tmpdir(), 'data-pipelines-sample-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const NOW = new Date('2026-11-21T10:00:00Z');

function attempt(settings: object, signal = new AbortController().signal) {
  const requests: RequestRecord[] = [];
  const waits: Date[] = [];
  const record = (request: RequestRecord) => {
    requests.push(request);
    return { done() {}, failed() {} };
  };
  const context = {
    config: SampleSourceConfig.parse(settings),
    filesRoot: root,
    signal,
    now: () => NOW,
    rateLimited: (end: Date) => waits.push(end),
    recorder: { start: record },
  } as unknown as ConnectorContext<SampleSourceConfig>;
  const read = async () => {
    const [stream] = await sampleSource.discover(context);
    let rows = 0;
    try {
      for await (const batch of sampleSource.read(context, requestOf(stream as NonNullable<typeof stream>))) {
        rows += batch.rows.length;
      }
      return { rows, error: null };
    } catch (error) {
      return { rows, error };
    }
  };
  return { read, requests, waits };
}

const CLASSES: Partial<Record<Fault, abstract new (...args: never[]) => Error>> = {
  retryable: errors.RetryableError,
  timeout: errors.TimeoutError,
  auth: errors.AuthenticationError,
  config: errors.ConfigurationError,
  data: errors.DataError,
  schema_changed: errors.SchemaChangedError,
  rate_limit: errors.RateLimitedError,
  unknown: TypeError,
};
for (const [fault, expected] of Object.entries(CLASSES)) {
  test(`the fault ${fault} occurs at its row, in the first attempts only`, async () => {
    const settings = { fault, fault_at_row: 25, faulty_attempts: 2, counter: fault, batch_rows: 10 };
    for (const number of [1, 2]) {
      const { rows, error } = await attempt(settings).read();
      expect([number, rows]).toEqual([number, 25]);
      expect(error).toBeInstanceOf(expected);
    }
    expect(await attempt(settings).read()).toEqual({ rows: 100, error: null });
  });
}

test('a rate limit reports its end, to the run as well', async () => {
  const limited = attempt({ fault: 'rate_limit', rate_limit_ms: 500, counter: 'limit' });
  const { error } = await limited.read();
  expect((error as errors.RateLimitedError).until).toEqual(new Date(NOW.getTime() + 500));
  expect(limited.waits).toEqual([new Date(NOW.getTime() + 500)]);
});

test('a stall ends with an abort, a hang does not', async () => {
  for (const fault of FAULTS.filter((name) => name === 'stall' || name === 'hang')) {
    const abort = new AbortController();
    let end = 'still there';
    const reading = attempt({ fault, counter: fault, fault_at_row: 50 }, abort.signal);
    void reading.read().then(({ error }) => {
      end = String(error);
    });
    await until(() => existsSync(join(root, '.sample', fault, 'stream_1')));
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
    abort.abort(new Error('stopped'));
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
    expect(end).toBe(fault === 'stall' ? 'Error: stopped' : 'still there');
  }
});

test('the token is in the address, query, headers and body of each recorded request', async () => {
  const { read, requests } = attempt({ record_requests: true, token: 'p4ssw0rd&more', batch_rows: 50 });
  await read();
  expect(requests).toHaveLength(2);
  for (const part of [requests[0]?.query, requests[0]?.headers, requests[0]?.body]) {
    expect(JSON.stringify(part)).toContain('p4ssw0rd&more');
  }
  expect(requests[0]?.url).toContain('p4ssw0rd%26more');
});
