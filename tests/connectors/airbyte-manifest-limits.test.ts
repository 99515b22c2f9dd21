import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { json, startHttpServer } from '../support/http-server.ts';
import { check, discover, manifestOf, problemsOf, read, streamOf } from './manifest-support.ts';

const server = startHttpServer();
afterAll(() => server.close());
beforeEach(() => {
  server.seen.length = 0;
});
const url = server.url;
const properties = { id: { type: 'integer' } };
const option = { type: 'RequestOption', inject_into: 'request_parameter', field_name: 'page' };
const one = (more: object = {}) => manifestOf([streamOf('items', { url, properties, ...more })]);
const paged = (pagination_strategy: object) =>
  one({ retriever: { paginator: { type: 'DefaultPaginator', pagination_strategy, page_token_option: option } } });

describe('what is not supported', () => {
  const custom = (name: string) => ({
    type: 'CustomRecordExtractor',
    class_name: `source.components.${name}`,
    field_path: [],
  });
  const manifest = manifestOf([
    streamOf('fine', { url, properties }),
    streamOf('extracted', { url, selector: { extractor: custom('A') } }),
    streamOf('routed', {
      url,
      retriever: { partition_router: [{ class_name: 'source.R' }], decoder: { type: 'TarDecoder' } },
    }),
    { type: 'DeclarativeStream', name: 'asked', retriever: { type: 'FileRetriever' } },
    streamOf('templated', { url, path: "/{{ open('/etc/passwd') }}/{{ stream_status.x | sneak }}" }),
  ]);

  test('is rejected by check, read and discovery, with every location', async () => {
    server.on('/fine', json([]));
    expect(problemsOf({ manifest })).toEqual([]);
    const refused = check({ manifest });
    await expect(refused).rejects.toMatchObject({ type: 'config_error', code: 'unsupported_manifest' });
    const { message } = (await refused.catch((error: unknown) => error)) as Error;
    for (const place of [
      'streams[1].retriever.record_selector.extractor: CustomRecordExtractor (source.components.A) is not supported',
      'streams[2].retriever.partition_router[0]: CustomComponent (source.R) is not supported',
      'streams[2].retriever.decoder: TarDecoder is not supported',
      'streams[3].retriever: FileRetriever is not supported',
      'unknown variable or function "open"',
      'unknown filter "sneak"',
      'unknown variable or function "stream_status"',
    ])
      expect(message).toContain(place);
    await expect(discover({ manifest })).rejects.toMatchObject({ code: 'unsupported_manifest' });
    expect(server.seen).toHaveLength(0);
  });

  test('can be skipped stream by stream', async () => {
    server.on('/fine', json([{ id: 1 }]));
    const settings = { manifest, skip_unsupported_streams: true };
    expect((await check(settings)).checks.map(({ status }) => status)).toEqual(['passed', 'passed']);
    expect((await discover(settings)).map(({ name }) => name)).toEqual(['fine']);
    expect((await read(settings)).ids).toEqual(['1']);
  });
});

describe('a document that is not a manifest is rejected on save', () => {
  const laughs = (levels: number) => {
    const definitions: Record<string, unknown> = { l0: { a: 1 } };
    for (let at = 1; at <= levels; at += 1) {
      definitions[`l${at}`] = Object.fromEntries(
        ['a', 'b', 'c', 'd'].map((name) => [name, { $ref: `#/definitions/l${at - 1}` }]),
      );
    }
    return definitions;
  };
  test.each([
    ['broken: [', 'Line'],
    ['[1, 2]', 'Not a manifest'],
    ['streams: &a [*a]', ''],
    [
      JSON.stringify({
        ...one(),
        definitions: { a: { $ref: '#/definitions/b' }, b: { x: { $ref: '#/definitions/a' } } },
      }),
      'refers to itself',
    ],
    [JSON.stringify({ ...one(), definitions: { a: { $ref: '#/nowhere' } } }), 'does not exist'],
    [JSON.stringify({ ...one(), definitions: laughs(20), spec: { a: { $ref: '#/definitions/l20' } } }), 'expand'],
    [
      JSON.stringify({
        ...manifestOf([{ type: 'DeclarativeStream', name: 'x', retriever: { $ref: '#/definitions/l9' } }]),
        definitions: Object.fromEntries(
          Object.entries(laughs(9)).map(([name, part]) => [name, { type: 'Any', ...(part as object) }]),
        ),
      }),
      'more than 100000 components',
    ],
    [`{"streams": ${'['.repeat(5000)}${']'.repeat(5000)}}`, 'deep'],
    [
      `a: &a [${Array(9).fill('"x"').join()}]\nb: &b [${Array(99).fill('*a').join()}]\nc: &c [${Array(99).fill('*b').join()}]\nstreams: [*c,*c]`,
      'aliases',
    ],
  ])('%.40s', (manifest, problem) => {
    const [first] = problemsOf({ manifest });
    expect(first).toStartWith('manifest: ');
    expect(first).toContain(problem);
  });
});

describe('endless pages are stopped', () => {
  test('a cursor that repeats', async () => {
    server.on('/items', ({ query }) => Response.json([{ id: 1 }, { at: (Number(query.page ?? 0) + 1) % 7 }]));
    await expect(
      read({ manifest: paged({ type: 'CursorPagination', cursor_value: '{{ last_record.at + 10 }}' }) }),
    ).rejects.toMatchObject({
      code: 'endless_pages',
    });
  });

  test('an ignored page number, and more pages than allowed', async () => {
    server.on('/items', json([{ id: 1 }]));
    await expect(read({ manifest: paged({ type: 'PageIncrement' }) })).rejects.toMatchObject({ code: 'endless_pages' });
    let count = 0;
    server.on('/items', () => Response.json([{ id: (count += 1) }]));
    const endless = read({ manifest: paged({ type: 'PageIncrement' }), max_pages: 20 });
    await expect(endless).rejects.toMatchObject({ code: 'too_many_pages' });
    expect(count).toBeLessThanOrEqual(21);
  });

  test('but not a scroll with the same token on all pages', async () => {
    let count = 0;
    server.on('/items', () => Response.json((count += 1) <= 5 ? [{ id: count }] : []));
    const scroll = paged({
      type: 'CursorPagination',
      cursor_value: 'same',
      stop_condition: '{{ last_page_size == 0 }}',
    });
    expect((await read({ manifest: scroll })).ids).toEqual(['1', '2', '3', '4', '5']);
  });
});

test('an oversized page ends the read before it is buffered', async () => {
  server.on('/items', () => new Response(`[{"id": ${'1'.repeat(5000)}}]`));
  await expect(read({ manifest: one(), max_page_bytes: 2048 })).rejects.toMatchObject({ code: 'page_too_large' });
});

describe('templates', () => {
  const rendered = (value: string, record: object = { id: 1, list: Array.from({ length: 2000 }, (_, at) => at) }) => {
    server.on('/items', json([record]));
    return read({ manifest: one({ transformations: [{ type: 'AddFields', fields: [{ path: ['id'], value }] }] }) });
  };

  test.each([
    ["{{ 'x' * 10 ** 9 }}"],
    ['{% for a in record.list %}{% for b in record.list %}{{ a * b }}{% endfor %}{% endfor %}'],
    ["{{ (record.list | join('x') * 5000) | length }}"],
    ["{{ '' | regex_search('(' * 500) }}"],
    ['{{ 1 / 0 }}'],
    ["{{ 'a' + 1 }}"],
  ])('%s ends the read', async (value) => {
    const started = performance.now();
    await expect(rendered(value)).rejects.toMatchObject({ code: 'template_failed' });
    expect(performance.now() - started).toBeLessThan(5000);
  });

  test.each([
    ["{{ ''.constructor.constructor('return process')() }}"],
    ["{{ ''.__class__.__mro__[1].__subclasses__() }}"],
    ['{{ config.__proto__.polluted }}'],
    ['{{ record.constructor }}'],
    ["{{ record.get('__proto__') }}"],
    ['{{ record.list.map }}'],
    ['{{ namespace }}'],
    ["{{ 'abc'.constructor() | string | length }}"],
    ['{{ record.toString() | string | length }}'],
  ])('%s leads nowhere', async (value) => {
    const settings = { manifest: one({ transformations: [{ type: 'AddFields', fields: [{ path: ['id'], value }] }] }) };
    server.on('/items', json([{ id: 1, list: [] }]));
    const ids = await read(settings).then(
      (found) => found.ids,
      (error: { code: string }) => error.code,
    );
    expect(ids === 'unsupported_manifest' || Bun.deepEquals(ids, [null])).toBe(true);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test('that set fields with unusual names set nothing else', async () => {
    server.on('/items', json([{ id: 1 }]));
    const fields = [{ path: ['__proto__', 'polluted'], value: 'yes' }];
    await read({ manifest: one({ transformations: [{ type: 'AddFields', fields }] }) });
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test('patterns take linear time', async () => {
    const started = performance.now();
    const { ids } = await rendered(`{{ record.text | regex_search('((a+)+)+$') }}`, {
      id: 1,
      text: `${'a'.repeat(5000)}!`,
    });
    expect(ids).toEqual([null]);
    expect(performance.now() - started).toBeLessThan(3000);
  });
});

describe('the configuration', () => {
  const connection_specification = {
    type: 'object',
    $schema: 'http://json-schema.org/draft-04/schema#',
    required: ['start', 'credentials'],
    properties: {
      start: { type: 'string', pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' },
      name: { type: 'string', pattern: '^[a-z]+$' },
      size: { type: 'integer', default: 50, minimum: 1 },
      credentials: {
        oneOf: [
          { properties: { kind: { const: 'key' }, key: { type: 'string', airbyte_secret: true } } },
          {
            properties: {
              kind: { const: 'apps' },
              apps: { type: 'array', items: { properties: { id: {}, secret: { airbyte_secret: true } } } },
            },
          },
        ],
      },
    },
  };
  const manifest = manifestOf(
    [
      streamOf('items', {
        url,
        properties,
        requester: {
          request_parameters: {
            all: '{{ config.size }} {{ config.credentials.apps[0].id }} {{ config.credentials.apps[0].secret }}',
          },
        },
      }),
    ],
    {
      spec: { type: 'Spec', connection_specification },
    },
  );

  test("is validated against the manifest's spec", () => {
    expect(problemsOf({ manifest, config: { start: 'soon', name: 'shop', size: 0 }, secrets: {} })).toEqual([
      'config: "credentials" is missing',
      'config: "start" must match pattern "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"',
      'config: "size" must be >= 1',
    ]);
  });

  test('stores secrets separately; templates see them together with the defaults', async () => {
    const config = { start: '2026-01-01', credentials: { kind: 'apps', apps: [{ id: 'a', secret: 's' }] } };
    expect(problemsOf({ manifest, config })).toEqual([
      'config: "credentials.apps.0.secret" is a secret. Move it to "secrets", at the same path.',
    ]);
    server.on('/items', json([]));
    const parted = { start: '2026-01-01', credentials: { kind: 'apps', apps: [{ id: 'a' }] } };
    await read({ manifest, config: parted, secrets: { credentials: { apps: [{ secret: 's' }] } } });
    expect(server.seen[0]?.query.all).toBe('50 a s');
  });
});
