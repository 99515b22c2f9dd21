import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { gzipSync } from 'node:zlib';
import {
  AuthenticationError,
  ConfigurationError,
  DataError,
  RateLimitedError,
  RetryableError,
  TimeoutError,
} from '../../server/connectors/contract/errors.ts';
import { INTERACTIVE } from '../../server/connectors/kits/rest/retry.ts';
import { httpApiSource } from '../../server/connectors/http-api/source.ts';
import { requestedWait } from '../../server/connectors/kits/rest/retry-after.ts';
import { inTurn, json, startHttpServer } from '../support/http-server.ts';
import { apiContext, problemsOf, readAll } from './http-support.ts';

const server = startHttpServer();
afterAll(() => server.close());
beforeEach(() => {
  server.seen.length = 0;
});
const one = json([{ id: 1 }]);
const stream = { name: 'items', request: { path: '/items' } };
const settings = (more: object = {}) => ({ base_url: server.url, streams: [stream], ...more });
const check = (more: object = {}) => httpApiSource.check(apiContext(settings(more)).context);

describe("an error response becomes an error of its class, with the server's message", () => {
  test.each([
    [401, AuthenticationError, 'unauthorized'],
    [403, AuthenticationError, 'forbidden'],
    [400, ConfigurationError, 'bad_request'],
    [404, ConfigurationError, 'not_found'],
    [422, ConfigurationError, 'bad_request'],
    [500, RetryableError, 'server_error'],
    [503, RetryableError, 'server_error'],
  ] as const)('%i', async (status, type, code) => {
    server.on('/items', json({ errors: [{ detail: 'the server says why' }] }, { status }));
    const error = await check().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ code, message: expect.stringContaining('the server says why') });
    expect(server.seen).toHaveLength(status >= 500 ? 2 : 1);
  });

  test('without secrets that the server echoes', async () => {
    server.on('/items', ({ headers }) =>
      Response.json({ message: `no such key ${headers['x-key']}` }, { status: 400 }),
    );
    const authentication = { type: 'api_key', in: 'header', name: 'X-Key', value: '{{ secrets.key }}' };
    const error = await check({ authentication, secrets: { key: 'very-secret-key' } }).catch(
      (thrown: unknown) => thrown,
    );
    expect((error as Error).message).toContain('no such key');
    expect((error as Error).message).not.toContain('very-secret-key');
  });

  test.each([
    ['a message', { status: 400 }, {}],
    ['an error with the status of a success', { status: 200 }, { errors: [{ when: 'message', message: 'message' }] }],
  ])('without the half of a secret at which %s is cut', async (_, init, more) => {
    server.on('/items', ({ headers }) => Response.json({ message: `${'-'.repeat(290)}${headers['x-key']}` }, init));
    const authentication = { type: 'api_key', in: 'header', name: 'X-Key', value: '{{ secrets.key }}' };
    const error = await check({ ...more, authentication, secrets: { key: 'very-secret-key' } }).catch(
      (thrown: unknown) => thrown,
    );
    expect((error as Error).message).toContain('-[redacted');
    expect((error as Error).message).not.toContain('very');
  });
});

describe('an error with the status of a success', () => {
  const wrapped = (more: object = {}) => settings({ streams: [{ ...stream, records: 'items', ...more }] });
  test.each([
    ['the records are gone', { rows: [{ id: 1 }] }, {}, 'records_missing'],
    ['an envelope', { ok: false, error: 'denied' }, {}, 'error_in_response'],
    [
      'a rule',
      { code: 7, text: 'quota', items: [{ id: 1 }] },
      { errors: [{ when: 'code != `0`', message: 'text' }] },
      'error_in_response',
    ],
  ])('ends the run: %s', async (_, body, more, code) => {
    server.on('/items', json(body));
    const context = apiContext(wrapped(more));
    await expect(httpApiSource.check(context.context)).rejects.toMatchObject({ code });
  });

  test.each([
    ['is retried', 'retry', ['1'], 2],
    ['counts as empty', 'ignore', [], 1],
  ])('%s by a rule', async (_, action, ids, requests) => {
    server.on('/items', inTurn(json({ busy: true }), json({ items: [{ id: 1 }] })));
    const api = wrapped({ errors: [{ when: 'busy', action }], schema: { properties: { id: { type: 'integer' } } } });
    expect((await readAll(api)).rows.flat()).toEqual(ids);
    expect(server.seen).toHaveLength(requests);
  });

  test('is an empty list where that is allowed, or where the service says so', async () => {
    const declared = { schema: { properties: { id: { type: 'integer' } } } };
    for (const [body, more] of [
      [{ page: 1 }, { missing_records: 'empty' }],
      [{ items: null }, {}],
      [{}, {}],
    ] as const) {
      server.on('/items', json(body));
      expect((await readAll(wrapped({ ...declared, ...more }) as never)).rows).toEqual([]);
    }
  });
});

describe('temporary failures are retried', () => {
  test.each([408, 425, 429, 500, 502, 503, 504])('%i', async (status) => {
    server.on('/items', inTurn(json({}, { status }), json({}, { status }), one));
    expect((await readAll(settings())).rows).toEqual([['1']]);
  });

  test('a lost connection', async () => {
    let calls = 0;
    const broken = Bun.listen({
      port: 0,
      hostname: '127.0.0.1',
      socket: {
        data(socket) {
          calls += 1;
          if (calls < 3) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n[{"id"');
          else socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\nconnection: close\r\n\r\n[{"id": 1}]');
        },
      },
    });
    const made = apiContext({ base_url: `http://127.0.0.1:${broken.port}`, streams: [stream] });
    // Ten of eleven bytes are not a page.
    await expect(httpApiSource.discover(made.context)).rejects.toBeInstanceOf(DataError);
    expect(calls).toBe(3);
    broken.stop(true);
  });

  test('a response timeout', async () => {
    const never = Promise.withResolvers<void>();
    server.on('/items', async () => {
      await never.promise;
      return new Response();
    });
    const retries = { max_attempts: 2, base_seconds: 0.001 };
    const reading = readAll(settings({ timeout_seconds: 0.5, retries }));
    await expect(reading).rejects.toBeInstanceOf(TimeoutError);
    expect(server.seen).toHaveLength(2);
    never.resolve();
  });

  test('a check waits no longer than the definition allows', async () => {
    server.on('/items', () => new Promise(() => {}));
    const begun = performance.now();
    const error = await check({ timeout_seconds: 0.5 }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TimeoutError);
    expect(error).toMatchObject({ code: 'request_timeout', message: expect.stringContaining('within 0.5 s') });
    expect(performance.now() - begun).toBeLessThan(5_000);
    expect(2 * INTERACTIVE.timeout_seconds).toBeLessThan(20 - 1);
  });

  test('but only as often as the definition allows', async () => {
    server.on('/items', json({}, { status: 500 }));
    await expect(readAll(settings({ retries: { max_attempts: 3, base_seconds: 0.001 } }))).rejects.toBeInstanceOf(
      RetryableError,
    );
    expect(server.seen).toHaveLength(3);
  });
});

describe('a service that asks to wait', () => {
  const asking = (headers: Record<string, string>, status = 429) => json({}, { status, headers });

  test('is waited for, with a message that names the end', async () => {
    server.on('/items', inTurn(asking({ 'retry-after': '0.2' }), one));
    const begun = performance.now();
    const { rows, waits, context } = await readAll(settings());
    expect(rows).toEqual([['1']]);
    expect(performance.now() - begun).toBeGreaterThan(190);
    expect(waits).toEqual([new Date(context.now().getTime() + 200)]);
  });

  test('for longer than allowed reports the time to the engine', async () => {
    server.on('/items', asking({ 'retry-after': '3600' }));
    const error = await readAll(settings()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RateLimitedError);
    expect((error as RateLimitedError).until).toEqual(new Date('2026-11-21T11:00:00Z'));
  });

  test('by 403 with an empty quota is not taken for denied access', async () => {
    server.on('/items', inTurn(asking({ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '0.05' }, 403), one));
    expect((await readAll(settings())).rows).toEqual([['1']]);
  });

  test('by an empty quota on a page is waited for before the next page', async () => {
    server.on('/items', json([{ id: 1 }], { headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '0.1' } }));
    const { waits } = await readAll(settings({ streams: [stream, { ...stream, name: 'again' }] }));
    // Discovery asks for the second stream while the quota of the first is used up.
    expect(waits).toHaveLength(1);
  });

  test.each([
    [{ 'retry-after': '120' }, 120_000],
    [{ 'retry-after': 'Sat, 21 Nov 2026 10:00:30 GMT' }, 30_000],
    [{ 'retry-after': 'Sat, 21 Nov 2026 10:00:30 GMT', date: 'Sat, 21 Nov 2026 10:00:10 GMT' }, 20_000],
    [{ 'retry-after': 'Sat, 21 Nov 2026 09:00:00 GMT' }, 0],
    [{ 'x-ratelimit-reset': '1795255260' }, 60_000],
    [{ 'x-ratelimit-reset': '1795255260000' }, 60_000],
    [{ 'ratelimit-reset': '17' }, 17_000],
    [{ 'retry-after': 'soon' }, null],
    [{}, null],
  ] as [Record<string, string>, number | null][])('%p', (headers, ms) => {
    expect(requestedWait(new Headers(headers), new Date('2026-11-21T10:00:00Z'))).toBe(ms);
  });
});

describe('an unusable response ends the read with its location', () => {
  test.each([
    ['broken JSON', () => new Response('[{"id": 1}, {"id": '), 'malformed_json', 'character 20'],
    ['a page of HTML', () => new Response('<html>sign in</html>'), 'malformed_json', 'HTML'],
    [
      'text in another encoding',
      () => new Response(new Uint8Array([0x5b, 0x22, 0xe9, 0x22, 0x5d])),
      'malformed_text',
      'UTF-8',
    ],
  ] as const)('%s', async (_, answer, code, words) => {
    server.on('/items', answer);
    const error = await readAll(settings()).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code, message: expect.stringContaining(words) });
    expect(error).toBeInstanceOf(DataError);
  });

  test.each([true, false])(
    'a giant page, with Content-Length: %p, takes no more memory than the limit',
    async (told) => {
      const chunk = Buffer.alloc(1024 * 1024, 'a');
      let sent = 0;
      server.on('/items', () => {
        if (told) return new Response(Buffer.alloc(64 * 1024 * 1024, 'a'));
        return new Response(
          new ReadableStream({
            pull(controller) {
              sent += 1;
              controller.enqueue(chunk);
              if (sent > 500) controller.close();
            },
          }),
        );
      });
      const error = await readAll(settings({ max_page_bytes: 2 * 1024 * 1024 })).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'page_too_large' });
      expect(sent).toBeLessThan(100);
    },
  );

  test('a small page that decompresses to a giant one', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    for (const headers of [{ 'content-encoding': 'gzip' }, {}] as Record<string, string>[]) {
      server.on('/items', () => new Response(bomb, { headers }));
      const error = await readAll(settings({ max_page_bytes: 2 * 1024 * 1024 })).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'page_too_large' });
    }
  });
});

describe('an inconsistent definition is rejected with its location', () => {
  const problem = (definition: unknown, more: object = {}) =>
    problemsOf({ definition: typeof definition === 'string' ? definition : JSON.stringify(definition), ...more }).join(
      '\n',
    );
  const base_url = 'https://api.example.com';

  test('YAML is accepted like JSON', () => {
    expect(problem(`base_url: ${base_url}\nstreams:\n  - name: items\n    request: { path: /items }\n`)).toBe('');
  });

  test.each([
    ['base_url: [', /Line 1/],
    ['just text', /must be an object/],
    [
      `base_url: ${base_url}\nstreams:\n  - name: items\n    request:\n      pth: /items\n`,
      /Line 5, streams\[0\]\.request\.path: this setting is required|Line 5, streams\[0\]\.request: unknown setting "pth"/,
    ],
    [{ base_url, streams: [] }, /streams/],
    [{ base_url, streams: [stream, stream] }, /items: another stream has the same name/],
    [
      { base_url, streams: [{ ...stream, records: 'data.[' }] },
      /streams\[0\]\.records: Not a valid JMESPath expression/,
    ],
    [{ base_url, streams: [{ ...stream, request: { path: '/{{ 1 + 1 }}' } }] }, /A reference is written/],
    [
      { base_url, streams: [{ ...stream, request: { path: '/{{ process.env }}' } }] },
      /\{\{ process\.env \}\} is not available here/,
    ],
    [{ base_url, streams: [{ ...stream, request: { path: '/{{ parent.id }}' } }] }, /the stream has none/],
    [{ base_url, streams: [{ ...stream, parent: { stream: 'other' } }] }, /there is no stream "other"/],
    [{ base_url, streams: [{ ...stream, parent: { stream: 'items' } }] }, /its own parent/],
    [{ base_url, streams: [{ ...stream, pagination: { type: 'page_number' } }] }, /must use \{\{ page\.number \}\}/],
    [
      { base_url, streams: [{ ...stream, incremental: { cursor_field: 'at', step_days: 1 } }] },
      /step_days needs a start/,
    ],
    [
      { base_url, authentication: { type: 'bearer', token: '{{ secrets.token }}' }, streams: [stream] },
      /^secrets: The definition uses \{\{ secrets\.token \}\}/,
    ],
  ])('%p', (definition, message) => {
    expect(problem(definition)).toMatch(message);
  });

  test('a document whose aliases expand without end', () => {
    const levels = Array.from(
      { length: 12 },
      (_, at) => `a${at + 1}: &a${at + 1} [${Array(9).fill(`*a${at}`).join(', ')}]`,
    );
    expect(problem(`a0: &a0 [x]\n${levels.join('\n')}\nbase_url: ${base_url}\nstreams: *a12\n`)).toMatch(
      /aliases|anchor/i,
    );
  });
});
