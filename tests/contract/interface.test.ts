import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createApp } from '../../server/http/app.ts';
import { proceduresOf } from '../../server/http/rest.ts';
import { appRouter, restRouter } from '../../server/router.ts';
import { testDeps } from '../support/database.ts';
import { type Json, type Operation, readContract, type Schema } from './document.ts';
import { ADDITIONS, ENDPOINTS, type Expected, PREFIXES } from './endpoints.ts';

const { operations, resolve, document } = readContract();
const app = createApp((await testDeps()).deps);
const nameOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`;
const served = proceduresOf([appRouter, restRouter]).map(({ endpoint }) => endpoint);
/** The first test reports missing rows once. */
const rows = ENDPOINTS.filter((row) => operations.some(({ name }) => name === nameOf(row)));

/** The operation in the form of the table's rows. */
function rowOf({ method, path, told }: Operation, { added }: Expected): Expected {
  const parameters = told.parameters.filter((one: Json) => one.in !== 'header');
  const own = parameters.filter((one: Json) => !added.includes(one.name));
  return {
    method,
    path,
    operation_id: told.operationId,
    parameters: own.map(parameterOf).toSorted(),
    added: parameters.filter((one: Json) => !one.required && added.includes(one.name)).map((one: Json) => one.name),
    body: bodyOf(told.requestBody),
    status: Number(Object.keys(told.responses).find((status) => status.startsWith('2'))),
    response: responseOf(told),
  };
}

function parameterOf({ in: place, name, required, schema }: Json): string {
  const value = resolve(schema).default;
  const absent = required ? '' : value === undefined ? ' ?' : ` = ${value}`;
  return `${place} ${name} ${typeOf(schema)}${absent}`;
}

function typeOf(schema: Schema): string {
  if (schema.$ref) return schema.$ref.split('/').at(-1);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join('|');
  if (Array.isArray(schema.type)) return schema.type.map((type: string) => typeOf({ ...schema, type })).join('|');
  if (schema.enum) return 'enum';
  if (schema.type === 'array') return `[${typeOf(schema.items)}]`;
  if (schema.type === 'object' && schema.additionalProperties) return `{${typeOf(schema.additionalProperties)}}`;
  return schema.type === 'string' ? (schema.format ?? 'string') : schema.type;
}

function bodyOf(body: Json): string | null {
  if (!body) return null;
  const [[type, { schema }]] = Object.entries<Json>(body.content) as [[string, Json]];
  const name = typeOf(schema);
  if (type === 'multipart/form-data') return body.required ? `multipart ${name}` : name;
  return body.required ? name : name.replace(/\|null$/, '?');
}

function responseOf({ responses }: Json): string {
  const [, { content }] = Object.entries<Json>(responses).find(([status]) => status.startsWith('2'))!;
  if (!content) return '-';
  const [[type, { schema }]] = Object.entries<Json>(content) as [[string, Json]];
  return type === 'application/x-ndjson' ? 'ndjson' : typeOf(schema);
}

describe('the interface', () => {
  test('has sixty operations', () => {
    expect(ENDPOINTS).toHaveLength(60);
    expect(new Set(ENDPOINTS.map(nameOf)).size).toBe(60);
  });

  test('is served in full, and nothing else below its paths', () => {
    const below = (path: string) => PREFIXES.some((prefix) => path === prefix || path.startsWith(`${prefix}/`));
    const added = ADDITIONS.map(([name]) => name);
    const wanted = [...ENDPOINTS.map(nameOf), ...added].toSorted();
    expect(served.map(nameOf).toSorted()).toEqual(wanted);
    expect(operations.map(({ name }) => name).toSorted()).toEqual(wanted);
    const marked = operations.filter(({ told }) => told['x-addition']);
    expect(marked.map(({ name, told }) => [name, told.operationId]).toSorted()).toEqual(ADDITIONS.toSorted());
    const pattern = (path: string) => path.replaceAll(/\{\w+\}|:\w+/g, '*');
    const routed = new Set(app.routes.map(({ path }) => pattern(path)).filter(below));
    const paths = [...ENDPOINTS.map(({ path }) => path), ...added.map((name) => name.split(' ')[1]!)].filter(below);
    expect([...routed].toSorted()).toEqual([...new Set(paths.map(pattern))].toSorted());
  });

  test('does over REST all that tRPC does', () => {
    const procedures: Record<string, any> = appRouter._def.procedures;
    const rpcOnly = Object.keys(procedures).filter((name) => !procedures[name]._def.meta?.endpoint);
    // `runs.get` and `users.revokeKey` have twins of another form, `runs.progress` is a stream, and only the console
    // confirms sessions.
    expect(rpcOnly.toSorted()).toEqual(['runs.get', 'runs.progress', 'users.confirmSession', 'users.revokeKey']);
  });

  test.each(rows.map((row) => [nameOf(row), row] as const))('%s is as the table says', (name, row) => {
    const expected = { ...row, added: row.added.toSorted() };
    const actual = rowOf(operations.find((one) => one.name === name)!, row);
    expect({ ...actual, added: actual.added.toSorted() }).toEqual(expected);
  });

  test.each(rows.filter(({ body }) => body).map(nameOf))('%s has an example of its body', (name) => {
    const { requestBody } = operations.find((one) => one.name === name)!.told;
    const [media] = Object.values<Json>(requestBody.content);
    expect(Object.keys(media.examples ?? {}).length).toBeGreaterThan(0);
  });

  test('has the expected schema names', () => {
    const names = ENDPOINTS.flatMap(
      ({ body, response, parameters }) => `${body} ${response} ${parameters.join(' ')}`.match(/\b[A-Z]\w+/g) ?? [],
    );
    const known = Object.keys(document.components.schemas);
    expect([...new Set([...names, 'HTTPValidationError'])].filter((name) => !known.includes(name))).toEqual([]);
  });
});

/** Statuses in the names of tests, by the operations that the tests or their groups name. */
const tested = new Map<string, Set<number>>();
const OPERATION = /\b(?:GET|POST|PUT|DELETE) \/[\w/{}.-]*/g;
for (const folder of ['../api', '.']) {
  const files = readdirSync(join(import.meta.dir, folder)).filter((file) => file.endsWith('.test.ts'));
  for (const file of files) {
    const groups = readFileSync(join(import.meta.dir, folder, file), 'utf8').split(/^describe/m);
    for (const group of groups.slice(1)) {
      const ofGroup = group.slice(0, group.indexOf('=> {')).match(OPERATION) ?? [];
      for (const [, , title = ''] of group.matchAll(/(?:test|\))\(\s*(['"`])(.*?)\1,/gs)) {
        const statuses = (title.match(/\b[245]\d\d\b/g) ?? []).map(Number);
        for (const name of [...ofGroup, ...(title.match(OPERATION) ?? [])]) {
          tested.set(name, new Set([...(tested.get(name) ?? []), ...statuses]));
        }
      }
    }
  }
}

/** tests/api/permissions.test.ts and tests/contract/every-operation.test.ts test these on every operation. */
const TRIED_ON_ALL = [401, 403, 404, 413, 422, 500];

describe('a test names the operation and the status, for every status that is its own', () => {
  test.each(served.map((one) => [nameOf(one), one] as const))('%s', (name, { status, errors }) => {
    const own = [status, ...errors].filter((one) => !TRIED_ON_ALL.includes(one));
    expect(own.filter((one) => !tested.get(name)?.has(one))).toEqual([]);
  });
});
