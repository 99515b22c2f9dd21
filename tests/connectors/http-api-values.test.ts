import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { httpApiSource } from '../../server/connectors/http-api/source.ts';
import type { Field } from '../../server/connectors/contract/connector.ts';
import { limitHangs } from '../support/hangs.ts';
import { json, makeItems, startHttpServer } from '../support/http-server.ts';
import { apiContext, discoverOne, readAll } from './http-support.ts';

limitHangs();

const server = startHttpServer();
afterAll(() => server.close());
beforeEach(() => {
  server.seen.length = 0;
});
const read = (stream: object, more: object = {}) =>
  readAll({ base_url: server.url, streams: [{ name: 'items', request: { path: '/items' }, ...stream }] }, more);
const typesOf = (fields: Field[]) => Object.fromEntries(fields.map(({ path, type }) => [path[0], type]));

describe('responses in other formats', () => {
  test.each([
    ['csv', 'id;a\r\n1;"x;y"\r\n2;\r\n', { delimiter: ';' }],
    ['json_lines', '{"id":1,"a":"x;y"}\n\n{"id":2,"a":""}', {}],
    ['xml', '<r><i id="1"><a>x;y</a></i><i id="2"><a> </a></i></r>', { records: 'r.i[].{id: "@id", a: a || \'\'}' }],
  ])('%s', async (format, body, more) => {
    server.on('/items', () => new Response(body));
    expect((await read({ format, ...more })).rows).toEqual([
      ['1', 'x;y'],
      ['2', ''],
    ]);
  });

  test.each([
    ['csv', 'a,b\n"1,2', 'malformed_csv'],
    ['json_lines', '{"a":1}\n{"a"', 'malformed_json'],
    ['xml', '<r><a>', 'malformed_xml'],
  ])('half a response in %s is an error', async (format, body, code) => {
    server.on('/items', () => new Response(body));
    await expect(read({ format })).rejects.toMatchObject({ code });
  });
});

test('records without any field are no rows, and count for their page', async () => {
  const pages = [[{ a: 1 }, {}, { a: null }], [{}, {}], [{ a: 2 }]];
  server.on('/items', ({ query }) => Response.json(pages[Number(query.page)] ?? []));
  const request = { path: '/items', query: { page: '{{ page.number }}' } };
  const { rows } = await read({ request, pagination: { type: 'page_number', start: 0 } });
  expect(rows).toEqual([['1'], [null], ['2']]);
});

describe('a list in the records', () => {
  const items = { path: 'lines', fields: { order_id: 'id', at: 'updated_at' } };
  const orders = [
    { id: 1, updated_at: '2026-01-01T00:00:00Z', lines: [{ sku: 'a' }, { sku: 'b' }] },
    { id: 2, updated_at: '2026-01-02T00:00:00Z', lines: [] },
    { id: 3, updated_at: '2026-01-03T00:00:00Z', lines: [{ sku: 'c' }] },
  ];

  test('is a stream of its own, with the key of the record, page by page', async () => {
    server.on('/items', ({ query }) => Response.json(orders.slice(Number(query.page), Number(query.page) + 1)));
    const request = { path: '/items', query: { page: '{{ page.number }}' } };
    const { rows } = await read({ request, pagination: { type: 'page_number', start: 0 }, items });
    expect(rows).toEqual([
      ['a', '1', '2026-01-01T00:00:00Z'],
      ['b', '1', '2026-01-01T00:00:00Z'],
      ['c', '3', '2026-01-03T00:00:00Z'],
    ]);
  });

  test('continues by the cursor of the record', async () => {
    server.on('/items', json(orders));
    const stream = { items, incremental: { cursor_field: 'at' } };
    const first = await read(stream, { sync_mode: 'incremental' });
    orders.push({ id: 4, updated_at: '2026-01-03T00:00:00Z', lines: [{ sku: 'd' }] });
    server.on('/items', json(orders));
    expect((await read(stream, { sync_mode: 'incremental', state: first.state })).rows.map(([sku]) => sku)).toEqual([
      'd',
    ]);
  });

  test('that no record has is an error', async () => {
    server.on('/items', json([{ id: 1 }]));
    await expect(read({ items, schema: { properties: { sku: { type: 'string' } } } })).rejects.toMatchObject({
      code: 'records_missing',
    });
  });
});

test('every value is kept: digits, nesting, empty strings, null and absence', async () => {
  server.on(
    '/items',
    () =>
      new Response(`{"data": [
        {"id": 12345678901234567890, "big": 9223372036854775807, "amount": 0.1234567890123456789, "exp": 1e5, "text": "",
         "nested": {"n": 12345678901234567890.10, "a": [1.50]}, "list": [1, "x", null], "on": true},
        {"id": 1, "amount": null, "exp": -0, "text": "Zoë ☃ \\u0041", "extra": "new"}]}`),
  );
  const { rows, context } = await read({ records: 'data' });
  const { fields } = await discoverOne(context);
  expect(typesOf(fields)).toEqual({
    id: 'number',
    big: 'integer',
    amount: 'number',
    exp: 'integer',
    text: 'string',
    nested: 'json',
    list: 'array',
    on: 'boolean',
    extra: 'string',
  });
  expect(rows).toEqual([
    [
      '12345678901234567890',
      '9223372036854775807',
      '0.1234567890123456789',
      '100000',
      '',
      '{"n":12345678901234567890.10,"a":[1.5]}',
      '[1,"x",null]',
      'true',
      null,
    ],
    ['1', null, null, '0', 'Zoë ☃ A', null, null, null, 'new'],
  ]);
});

test('types widen to fit the sampled records', async () => {
  server.on(
    '/items',
    json([
      { a: 1, b: 1, c: 'x', d: null, e: { x: 1 } },
      { a: 1.5, b: 'text', c: [1], d: true, e: 7 },
    ]),
  );
  const { fields } = await discoverOne((await read({})).context);
  expect(typesOf(fields)).toEqual({ a: 'number', b: 'string', c: 'json', d: 'boolean', e: 'json' });
});

test('an invalid value is reported with its location; new fields raise a warning', async () => {
  server.on('/items', json([{ id: 1 }]));
  const stream = await discoverOne(
    apiContext({ base_url: server.url, streams: [{ name: 'items', request: { path: '/items' } }] }).context,
  );
  server.on('/items', json([{ id: 1, more: 2 }, { id: 'no number' }]));
  await expect(read({}, { stream })).rejects.toMatchObject({
    code: 'value_does_not_fit',
    message: expect.stringMatching(/items, page 1, record 2, field "id": the value is not of type integer/),
  });
  server.on('/items', json([{ id: 1, more: 2 }]));
  const { rows, warnings } = await read({}, { stream });
  expect(rows).toEqual([['1']]);
  expect(warnings).toEqual(['new_columns']);
});

test('a declared schema needs no request and accepts values as services write them', async () => {
  server.on(
    '/items',
    json([
      {
        id: '17',
        amount: '12.50',
        day: '2026-01-31',
        at: '2026-01-31T23:59:59.123456+02:00',
        unix: 1769903999,
        ms: 1769903999123,
        on: 'true',
        tags: ['x'],
      },
      { id: 18, amount: '', day: '', at: null, unix: null, ms: null, on: false, tags: null },
    ]),
  );
  const schema = {
    type: 'object',
    properties: {
      id: { type: 'integer' },
      amount: { type: ['number', 'null'] },
      day: { type: 'string', format: 'date' },
      at: { type: 'string', format: 'date-time' },
      unix: { type: 'integer', format: 'unix-time' },
      ms: { type: 'integer', format: 'unix-time-ms' },
      on: { type: 'boolean' },
      tags: { type: 'array' },
    },
  };
  const { context } = apiContext({
    base_url: server.url,
    streams: [{ name: 'items', request: { path: '/items' }, schema, primary_key: 'id' }],
  });
  const [stream] = await httpApiSource.discover(context);
  expect(server.seen).toEqual([]);
  expect(stream?.source_defined_primary_key).toEqual([['id']]);
  const { rows } = await read({ schema }, { stream });
  expect(rows).toEqual([
    [
      '17',
      '12.50',
      '2026-01-31',
      '2026-01-31 21:59:59.123456+00',
      '2026-01-31 23:59:59.000000+00',
      '2026-01-31 23:59:59.123000+00',
      'true',
      '["x"]',
    ],
    ['18', null, null, null, null, null, 'false', null],
  ]);
});

test('JMESPath reshapes records; one object is one record; plain values become records too', async () => {
  server.on(
    '/items',
    json({
      users: [
        { id: 1, profile: { mail: 'a@b' } },
        { id: 2, profile: null },
      ],
    }),
  );
  expect((await read({ records: 'users[].{id: id, mail: profile.mail}' })).rows).toEqual([
    ['1', 'a@b'],
    ['2', null],
  ]);
  server.on('/items', json({ id: 1 }));
  expect((await read({})).rows).toEqual([['1']]);
  server.on('/items', json(['x', 'y']));
  expect((await read({})).rows).toEqual([['x'], ['y']]);
  server.on('/items', json({ users: null }));
  expect((await read({ records: 'users' })).rows).toEqual([]);
});

describe('a child stream', () => {
  const streams = [
    {
      name: 'orders',
      request: { path: '/users/{{ parent.id }}/orders', query: { page: '{{ page.number }}' } },
      parent: { stream: 'users', fields: { user_id: 'id' } },
      pagination: { type: 'page_number' },
    },
    {
      name: 'users',
      request: { path: '/users', query: { page: '{{ page.number }}' } },
      pagination: { type: 'page_number' },
    },
    { name: 'lines', request: { path: '/orders/{{ parent.user_id }}/{{ parent.id }}' }, parent: { stream: 'orders' } },
  ];
  const users = ['a/b', 'ü', 'c', 'd', 'e'];
  const setUp = () => {
    server.on('/users', ({ query }) =>
      Response.json(users.slice(2 * Number(query.page) - 2, 2 * Number(query.page)).map((id) => ({ id }))),
    );
    for (const [at, user] of users.entries()) {
      const orders = Array.from({ length: at }, (_, id) => ({ id }));
      server.on(`/users/${encodeURIComponent(user)}/orders`, ({ query }) =>
        Response.json(query.page === '1' ? orders : []),
      );
      for (const { id } of orders)
        server.on(`/orders/${encodeURIComponent(user)}/${id}`, json([{ line: `${user}${id}` }]));
    }
  };

  test('is requested for each parent record, in order, several at a time', async () => {
    setUp();
    const { rows } = await readAll(
      { base_url: server.url, streams, rate_limit: { concurrency: 4 } },
      { name: 'orders' },
    );
    const wanted = users.flatMap((user, at) => Array.from({ length: at }, (_, id) => [String(id), user]));
    expect(rows).toEqual(wanted);
    const lines = await readAll({ base_url: server.url, streams }, { name: 'lines' });
    expect(lines.rows).toEqual(wanted.map(([id, user]) => [`${user}${id}`]));
  });

  test('that fails for one parent throws that error and leaves nothing open', async () => {
    setUp();
    server.on('/users/c/orders', json({ message: 'no such user' }, { status: 404 }));
    const reading = readAll({ base_url: server.url, streams, rate_limit: { concurrency: 4 } }, { name: 'orders' });
    await expect(reading).rejects.toThrow('no such user');
    expect(server.open()).toBe(0);
  });
});

test('memory does not grow with the number of pages', async () => {
  const page = JSON.stringify(makeItems(1000).map((item) => ({ ...item, filler: 'x'.repeat(200) })));
  const last = 400;
  server.on(
    '/items',
    ({ query }) => new Response(Number(query.page) <= last ? `${page}${' '.repeat(Number(query.page))}` : '[]'),
  );
  const stream = {
    request: { path: '/items', query: { page: '{{ page.number }}' } },
    pagination: { type: 'page_number' },
  };
  const { context } = apiContext({ base_url: server.url, streams: [{ name: 'items', ...stream }] });
  const schema = await discoverOne(context);
  const columns = schema.fields.map((field) => ({ field, masking: 'none' as const }));
  const request = {
    stream: schema,
    columns,
    filters: [],
    sync_mode: 'full_refresh' as const,
    cursor_field: null,
    primary_key: [],
    state: null,
    window: null,
  };
  let rows = 0;
  let early = 0;
  let late = 0;
  for await (const batch of httpApiSource.read(context, request)) {
    rows += batch.rows.length;
    server.seen.length = 0;
    if (rows % 50_000 >= 5000) continue;
    Bun.gc(true);
    const used = process.memoryUsage.rss();
    if (rows < 200_000) early = Math.max(early, used);
    else late = Math.max(late, used);
  }
  expect(rows).toBe(last * 1000);
  expect(late - early).toBeLessThan(60 * 1024 * 1024);
});
