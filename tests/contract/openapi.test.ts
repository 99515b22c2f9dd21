import { describe, expect, test } from 'bun:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { createApp } from '../../server/http/app.ts';
import { testDeps } from '../support/database.ts';

const { deps } = await testDeps();
const app = createApp(deps);
const get = async (path: string) => app.handle(new Request(`http://localhost${path}`));

const document: any = await (await get('/openapi.json')).json();
const operations: { name: string; operation: any }[] = Object.entries<Record<string, any>>(document.paths).flatMap(
  ([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, operation })),
);
const operation = (name: string) => operations.find((one) => one.name === name)!.operation;

describe('GET /openapi.json', () => {
  test('is a valid OpenAPI 3.1 document of version 1.0.0', async () => {
    const result = await new Validator().validate(structuredClone(document));
    expect(result.errors ?? []).toEqual([]);
    expect(result.valid).toBeTrue();
    expect(document).toMatchObject({ openapi: '3.1.0', info: { version: '1.0.0' } });
  });

  test('lists every operation once, with section, authentication and errors', () => {
    const ids = operations.map(({ operation: { operationId } }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { name, operation: told } of operations) {
      expect(told.tags, name).not.toContain('Other');
      expect(told.security, name).toEqual([{ bearer: [] }]);
      expect(Object.keys(told.responses), name).toEqual(expect.arrayContaining(['401', '422', '500']));
      expect('403' in told.responses || !told['x-required-permission'], name).toBeTrue();
      expect('404' in told.responses || !name.includes('{'), name).toBeTrue();
      expect('413' in told.responses || !told.requestBody?.content['application/json'], name).toBeTrue();
    }
  });

  test('documents a create in full: named body, query, 201', () => {
    const create = operation('post /connections');
    expect(create.requestBody).toMatchObject({
      required: true,
      content: { 'application/json': { schema: { $ref: '#/components/schemas/CreateConnectionRequest' } } },
    });
    expect(create.parameters.map((one: any) => `${one.in} ${one.name}`)).toEqual([
      'query date_range',
      'query start_date',
      'query end_date',
      'header Idempotency-Key',
    ]);
    expect(create.responses['201'].content['application/json'].schema.$ref).toEndWith('/ConnectionSchema');
    expect(create.responses['422'].content['application/json'].schema.$ref).toEndWith('/HTTPValidationError');
    expect(Object.keys(create.responses)).toEqual(expect.arrayContaining(['400', '402', '403']));
  });

  test('documents that the body of a run may be absent or null', () => {
    const { requestBody, responses } = operation('post /connections/{connection_id}/run');
    expect(requestBody.required).toBeFalse();
    expect(requestBody.content['application/json'].schema.anyOf).toContainEqual({ type: 'null' });
    expect(responses['200'].content['application/json'].schema.type).toEqual(['string', 'null']);
  });

  test('documents 204 without a body, and network logs as JSON Lines', () => {
    expect(operation('delete /connections/{connection_id}').responses['204'].content).toBeUndefined();
    const logs = operation('get /connection_runs/{connection_run_id}/network_logs');
    expect(Object.keys(logs.responses['200'].content)).toEqual(['application/x-ndjson']);
  });
});

describe('the reference', () => {
  test('loads only existing files of its own', async () => {
    const page = await get('/docs/api');
    const html = await page.text();
    const loaded = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url!);
    expect(loaded.length).toBeGreaterThan(2);
    for (const url of loaded) {
      expect(url).toStartWith('/docs/api/');
      expect((await get(url)).status).toBe(200);
    }
    expect(page.headers.get('content-security-policy')).not.toContain('http');
  });

  test('serves no other file of the package', async () => {
    for (const name of ['package.json', '..%2fpackage.json', 'constructor']) {
      expect((await get(`/docs/api/${name}`)).status).toBe(404);
    }
  });
});

describe('health', () => {
  test('alive and ready on a migrated database', async () => {
    expect((await get('/healthz')).status).toBe(200);
    expect((await get('/readyz')).status).toBe(200);
  });

  test('metrics name routes by template', async () => {
    await get('/connections/some-id');
    const text = await (await get('/metrics')).text();
    expect(text).toContain('route="/connections/{connection_id}"');
    expect(text).not.toContain('some-id');
  });
});
