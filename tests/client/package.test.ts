import { beforeAll, expect, test } from 'bun:test';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { buildClientPackage } from '../../client/package/build.ts';
import { plainTypes } from '../../client/package/declarations.ts';
import { exampleRequest } from '../../server/http/docs/reference/example.ts';
import { groupsOf } from '../../server/http/docs/reference/groups.ts';
import { codeSamples } from '../../server/http/docs/reference/samples.ts';
import { openApiDocument } from '../../server/http/openapi.ts';
import { proceduresOf } from '../../server/http/rest.ts';
import { appRouter, restRouter } from '../../server/router.ts';
import { FRUGAL } from '../support/compiler.ts';
import { temporaryFolder } from '../support/postgres.ts';

/** The types of the server, which the declarations must not bring along, are 160,000. */
const MAX_TYPES = 15_000;
const folder = temporaryFolder();
const installed = join(folder, 'node_modules/data-pipelines-client');
const COMPILER = join(import.meta.dir, '../../node_modules/.bin/tsc');

const PROGRAM = `
import { createApiClient, isApiError, type RouterInputs, type RouterOutputs, verifyWebhook } from 'data-pipelines-client';

const api = createApiClient('http://127.0.0.1:1', 'key');
const listed: RouterOutputs['connections']['list'] = await api.connections.list.query();
const health: 'healthy' | 'warning' | 'failing' | 'pending' | 'running' = listed[0]!.health;
const input: RouterInputs['runs']['run'] = { connection_id: listed[0]!.id };
const id: string | null = await api.runs.run.mutate(input);
api.runs.progress.subscribe(
  { connection_id: 'a', connection_run_id: 'b' },
  { onData: ({ run }) => run.number satisfies number, onError: ({ code }) => code satisfies string },
);
// @ts-expect-error -- unknown procedure
void api.connections.unheard;
// @ts-expect-error -- wrong input
await api.runs.run.mutate({ connection: 1 });
// @ts-expect-error -- the type of a result
const wrong: number = await api.runs.run.mutate(input);
export { health, id, isApiError, verifyWebhook, wrong };
`;

/** The examples in the comments of the client. */
const EXAMPLES = [
  ...readFileSync(join(import.meta.dir, '../../client/api.ts'), 'utf8').matchAll(/^ \* ```ts\n(.*?)^ \* ```$/gms),
].map(([, lines = '']) => lines.replaceAll(/^ \* ?/gm, ''));
const HEAD = `import { type ApiClient, isApiError } from 'data-pipelines-client';
declare const console: { log(...values: unknown[]): void; error(...values: unknown[]): void };
void [isApiError, console];
export async function example(api: ApiClient) {
`;

/** Those of the API reference, whole as it shows them. */
const served = proceduresOf([appRouter, restRouter]);
const document = openApiDocument(served);
const SAMPLES = groupsOf(document, served)
  .flatMap(({ operations }) => operations)
  .map((operation) => codeSamples(operation, exampleRequest(operation, document)).typescript)
  .filter((text) => text.includes('createApiClient('));
const GLOBALS = `declare const console: { log(...values: unknown[]): void; error(...values: unknown[]): void };
declare const process: { env: Record<string, string | undefined> };
`;

beforeAll(async () => {
  await buildClientPackage(installed, { ...process.env, ...FRUGAL });
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder, 'program.ts'), PROGRAM);
  EXAMPLES.forEach((text, at) => writeFileSync(join(folder, `example-${at}.ts`), `${HEAD}${text}}\n`));
  SAMPLES.forEach((text, at) => writeFileSync(join(folder, `sample-${at}.ts`), GLOBALS + text));
}, 240_000);

async function ran(command: string[]): Promise<{ code: number; out: string }> {
  const child = Bun.spawn(command, { cwd: folder, stdout: 'pipe', stderr: 'pipe' });
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, out: out + err };
}

/** Without skipLibCheck, types of Node and the DOM: the declarations stand alone. */
test('compiles in another project with every example of its documentation and the API reference, strictly and fast', async () => {
  const compilerOptions = {
    strict: true,
    target: 'ES2022',
    lib: ['ES2022'],
    module: 'NodeNext',
    skipLibCheck: false,
    types: [],
    noEmit: true,
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  const { code, out } = await ran([COMPILER, '-p', '.', '--singleThreaded', '--extendedDiagnostics']);
  expect({ code, out: code === 0 ? '' : out }).toEqual({ code: 0, out: '' });
  expect(EXAMPLES.length).toBeGreaterThan(0);
  expect(SAMPLES.length).toBeGreaterThan(100);
  expect(Number(/^Types:\s+(\d+)/m.exec(out)?.[1])).toBeWithin(1, MAX_TYPES);
});

test('has an example of every resource', () => {
  const text = EXAMPLES.join('\n');
  const resources = Object.keys(appRouter._def.procedures).map((name) => name.split('.')[0]!);
  expect([...new Set(resources)].filter((name) => !text.includes(`api.${name}.`))).toEqual([]);
});

test('runs on Node without any other package', async () => {
  mkdirSync(join(folder, 'src'), { recursive: true });
  writeFileSync(
    join(folder, 'src/run.mjs'),
    `import { createApiClient, isApiError } from 'data-pipelines-client';
     const error = await createApiClient('http://127.0.0.1:1', 'key').users.me.query().catch((error) => error);
     console.log(isApiError(error), error.code);`,
  );
  expect(await ran(['node', 'src/run.mjs'])).toEqual({ code: 0, out: 'true network_error\n' });
});

test('is complete, and holds no type of the server', () => {
  const { exports, version, dependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
  expect({ version, dependencies }).toEqual({
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    dependencies: undefined,
  });
  for (const { types, default: script } of Object.values(exports as Record<string, Record<string, string>>)) {
    expect(readFileSync(join(installed, types!), 'utf8')).not.toContain('import("./');
    expect(readFileSync(join(installed, script!), 'utf8')).not.toBe('');
  }
  expect(readFileSync(join(installed, 'LICENSE'), 'utf8')).toContain('MIT License');
  const foreign = 'export declare const appRouter: { a: import("./api/secret.ts").Key };\nexport type A = 1;\n';
  expect(() => plainTypes(foreign)).toThrow('"./api/secret.ts"');
});

test('verifies webhooks', async () => {
  const { verifyWebhook } = (await import(
    join(installed, 'index.js')
  )) as typeof import('../../client/package/index.ts');
  const body = '{"event":"connection_failed"}';
  const at = new Date();
  for (const secret of [`whsec_${Buffer.alloc(24, 7).toString('base64')}`, 'any text of sixteen']) {
    const signer = secret.startsWith('whsec_') ? new Webhook(secret) : new Webhook(secret, { format: 'raw' });
    const headers = {
      'Webhook-Id': 'msg_1',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': signer.sign('msg_1', at, body),
    };
    expect(verifyWebhook(body, headers, secret)).toEqual({ event: 'connection_failed' });
    expect(() => verifyWebhook(`${body} `, headers, secret)).toThrow();
    expect(() => verifyWebhook(body, {}, secret)).toThrow();
  }
});
