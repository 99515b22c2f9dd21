import { describe, expect, test } from 'bun:test';
import { createApp } from '../../server/http/app.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { type Json, type Operation, readContract } from './document.ts';
import { makeWorld, type World } from './world.ts';

/** Rules that hold for all operations, tested on each. 401 and 403: tests/api/permissions.test.ts. */
const contract = readContract();
const service = await testDeps();
const app = createApp(service.deps);
const api = testApi(service);
const foreign = await makeWorld(service, await api.otherAccount());

const UNKNOWN = '01900000-0000-7000-8000-000000000000';
const NOT_IDS = ['nonsense', '%00', '%2e%2e%2f', 'a%2Fb', '%F0%9F%92%A9', "';--", UNKNOWN.slice(1), `${UNKNOWN}0`];
/** Values of parameters other than ids. */
const VALUES: Record<string, string> = {
  connector_type: 'source',
  connector_name: 'nobody-made-this',
  parameter_name: 'rows',
  status: 'resolved',
  start_date: '2026-01-01',
  end_date: '2026-01-31',
};

const operations = contract.operations.map((one) => [one.name, one] as const);
const withIds = operations.filter(([, { path }]) => path.includes('{'));
const withKeys = operations.filter(([, { told }]) =>
  told.parameters.some((one: Json) => one.name === 'Idempotency-Key'),
);
const withJson = operations.filter(([, { told }]) => told.requestBody?.content['application/json']);
const bodiless = operations.filter(([, { told, method }]) => method === 'POST' && !told.requestBody?.required);

/** The path with `ids` filled in: those of the world, or the same text everywhere. */
function pathOf({ path, told }: Operation, ids: World | string): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (VALUES[name] !== undefined) return VALUES[name];
    return typeof ids === 'string' ? ids : (ids[name]?.[0] ?? UNKNOWN);
  });
  const required = told.parameters.filter((one: Json) => one.in === 'query' && one.required);
  const query = new URLSearchParams(required.map(({ name }: Json) => [name, VALUES[name] ?? '']));
  return query.size === 0 ? filled : `${filled}?${query.toString()}`;
}

const exampleOf = ({ told }: Operation): string | undefined => {
  const examples = told.requestBody?.content['application/json']?.examples;
  return examples && JSON.stringify(Object.values<Json>(examples)[0].value);
};

async function send(
  operation: Operation,
  path: string,
  options: { body?: string; headers?: Record<string, string>; app?: typeof app } = {},
) {
  const response = await (options.app ?? app).handle(
    new Request(`http://localhost${path}`, {
      method: operation.method,
      headers: {
        authorization: `Bearer ${service.api_key}`,
        ...(options.body !== undefined && { 'content-type': 'application/json' }),
        ...options.headers,
      },
      body: options.body,
    }),
  );
  const answer = { status: response.status, headers: response.headers, text: await response.text() };
  expect(contract.problemsOf(operation, answer)).toEqual([]);
  return { status: answer.status, body: answer.text === '' ? null : JSON.parse(answer.text) };
}

describe('404', () => {
  test.each(withIds)('%s: an id of another account, an unknown one', async (_name, operation) => {
    const body = exampleOf(operation);
    for (const ids of [foreign, UNKNOWN]) {
      expect(await send(operation, pathOf(operation, ids), { body })).toMatchObject({
        status: 404,
        body: { code: 'not_found', detail: expect.stringMatching(/ not found$/) },
      });
    }
  });

  test.each(withIds)(
    '%s: an invalid ID, percent-encoded or not; 422 only where a UUID is declared',
    async (_name, operation) => {
      const body = exampleOf(operation);
      const declared = operation.told.parameters.some((one: Json) => one.in === 'path' && one.schema.format === 'uuid');
      for (const id of NOT_IDS) {
        const { status } = await send(operation, pathOf(operation, id), { body });
        expect([id, status]).toEqual([id, declared ? 422 : 404]);
      }
    },
  );
});

describe('422', () => {
  test.each(operations)('%s: a query parameter that is not known', async (_name, operation) => {
    const path = pathOf(operation, foreign);
    const answer = await send(operation, `${path}${path.includes('?') ? '&' : '?'}unheard_of=1`, {
      body: exampleOf(operation),
    });
    expect(answer.status).toBe(422);
    expect(answer.body.detail).toContainEqual({
      loc: ['query', 'unheard_of'],
      msg: 'Extra inputs are not permitted',
      type: 'extra_forbidden',
    });
  });

  test.each(withJson)('%s: a body of another shape', async (_name, operation) => {
    const nullable = !operation.told.requestBody.required;
    for (const [body, type] of [
      ['[]', 'dict_type'],
      ['"x"', 'dict_type'],
      ['7', 'dict_type'],
      ['{"unheard_of":1}', 'extra_forbidden'],
      ['{', 'json_invalid'],
      ...(nullable ? [] : [['null', 'dict_type']]),
    ] as [string, string][]) {
      const answer = await send(operation, pathOf(operation, UNKNOWN), { body });
      expect(answer.status).toBe(422);
      expect(answer.body.detail.map((one: { type: string }) => one.type)).toContain(type);
      expect(answer.body.detail.every((one: { loc: unknown[] }) => one.loc[0] === 'body')).toBeTrue();
    }
  });

  test.each(withJson.filter(([, { told }]) => told.requestBody.required))('%s: no body', async (_name, operation) => {
    const answer = await send(operation, pathOf(operation, UNKNOWN));
    expect([answer.status, answer.body.detail]).toEqual([
      422,
      [{ loc: ['body'], msg: 'Field required', type: 'missing' }],
    ]);
  });
});

describe('a POST that needs no body', () => {
  test.each(bodiless)('%s: is accepted without body and content type', async (_name, operation) => {
    const { status } = await send(operation, pathOf(operation, UNKNOWN));
    expect(status).toBe(operation.path.includes('{') ? 404 : 200);
  });
});

describe('413', () => {
  /** One byte more than the document says: the text and its quotes. */
  const tooLarge = ({ told }: Operation) => {
    const [, mebibytes] = /^The body is larger than (\d+) MiB$/.exec(told.responses[413].description) ?? [];
    return `"${'x'.repeat(Number(mebibytes) * 1024 * 1024 - 1)}"`;
  };

  test.each(withJson)('%s: a body over the limit', async (_name, operation) => {
    const { status } = await send(operation, pathOf(operation, UNKNOWN), { body: tooLarge(operation) });
    expect(status).toBe(413);
  });

  test.each(withKeys)('%s: with an Idempotency-Key too', async (_name, operation) => {
    const { status } = await send(operation, pathOf(operation, UNKNOWN), {
      body: tooLarge(operation),
      headers: { 'idempotency-key': 'large' },
    });
    expect(status).toBe(413);
  });
});

describe('400', () => {
  test.each(withKeys)('%s: one Idempotency-Key for two requests', async (name, operation) => {
    const headers = { 'idempotency-key': name.replaceAll(/\W/g, '-') };
    const path = pathOf(operation, UNKNOWN);
    await send(operation, path, { body: exampleOf(operation), headers });
    const again = await send(operation, `${path}${path.includes('?') ? '&' : '?'}other=1`, { headers });
    expect(again).toMatchObject({ status: 400, body: { code: 'idempotency_key_reused' } });
  });
});

describe('500', () => {
  const broken = createApp({
    ...service.deps,
    secrets: {
      ...service.deps.secrets,
      hmacs: () => {
        throw new Error('the cause');
      },
    },
  });

  test.each(operations)('%s: reveals nothing of the cause', async (_name, operation) => {
    const { status, body } = await send(operation, pathOf(operation, UNKNOWN), {
      body: exampleOf(operation),
      app: broken,
    });
    expect(status).toBe(500);
    expect(Object.keys(body).toSorted()).toEqual(['code', 'detail', 'request_id']);
  });
});
