import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Glob } from 'bun';
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
      const isPublic = name === 'post /invitations/accept';
      expect(told.security, name).toEqual(isPublic ? [] : [{ bearer: [] }]);
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

describe('the document is tight:', () => {
  const schemas: Record<string, any> = document.components.schemas;

  test('every operation has a description', () => {
    expect(operations.filter(({ operation: { description } }) => !description).map(({ name }) => name)).toEqual([]);
  });

  test('numbers are integers, but for durations, shares and values of users', () => {
    const fractional: string[] = [];
    const walk = (node: any, path: string) => {
      if (typeof node !== 'object' || node === null) return;
      if (node.type === 'number') fractional.push(path);
      for (const [key, inner] of Object.entries(node)) walk(inner, `${path}/${key}`);
    };
    walk(schemas, '');
    const allowed = /duration_ms|percent|\/value\/|default|minimum|maximum|parameters|visible_when|examples/;
    expect(fractional.filter((path) => !allowed.test(path))).toEqual([]);
  });

  test('closed sets are enums', () => {
    const property = (schema: string, name: string) => {
      const { $ref, ...own } = schemas[schema].properties[name];
      return $ref ? schemas[$ref.split('/').at(-1)] : own;
    };
    for (const [schema, name] of [
      ['EventSchema', 'event'],
      ['EventSchema', 'category'],
      ['EventSchema', 'severity'],
      ['TriggerSchema', 'severity'],
      ['CaseTimelineEntry', 'type'],
      ['AccountConnectorSchema', 'auth_method'],
      ['AccountConnectorSummary', 'status'],
    ] as const) {
      expect([schema, name, property(schema, name).enum?.length > 1]).toEqual([schema, name, true]);
    }
  });

  test('error codes are enumerated: every code that the service names', () => {
    const known: string[] = schemas.ErrorCode.anyOf.find((one: any) => one.enum).enum;
    const root = join(import.meta.dir, '../../server');
    const named = [...new Glob('**/*.ts').scanSync(root)]
      .filter((file) => !file.startsWith('connectors/'))
      .map((file) => readFileSync(join(root, file), 'utf8'))
      .flatMap((text) => [...text.matchAll(/\b(?:badRequest|paymentRequired|ApiError)\(\s*(?:\d+,\s*)?'([a-z_]+)'/g)])
      .map(([, code]) => code!);
    expect([...new Set(named)].filter((code) => !known.includes(code))).toEqual([]);
  });

  test('the webhook of triggers is described', () => {
    const { post } = document.webhooks.trigger_fired;
    expect(post.requestBody.content['application/json'].schema.$ref).toEndWith('/WebhookDelivery');
    expect(Object.keys(schemas.WebhookDelivery.properties)).toEqual(
      expect.arrayContaining(['id', 'reason', 'event', 'trigger', 'case', 'payload']),
    );
  });

  test('402 is documented for an update that may use a feature outside the plan', () => {
    const update = operation('post /account_connectors/{account_connector_id}');
    expect(Object.keys(update.responses)).toContain('402');
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
