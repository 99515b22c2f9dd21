import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FRUGAL, TSC } from '../support/compiler.ts';
import { appRouter } from '../../server/router.ts';

const ROOT = join(import.meta.dir, '../..');
const CLIENT = join(ROOT, 'client/api.ts');

const examples = [...readFileSync(CLIENT, 'utf8').matchAll(/^ \* ```ts\n(.*?)^ \* ```$/gms)].map(([, lines = '']) =>
  lines.replaceAll(/^ \* ?/gm, ''),
);

/** The errors of tsc for each example, by its place. Each example is wrapped in a function. */
async function compile(bodies: string[]): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'examples-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const functions = bodies.map((body) => `export async function example(api: ApiClient) {\n${body}}\n`);
  functions.forEach((text, at) => {
    const head = `import { type ApiClient, isApiError } from '${CLIENT}';\nvoid isApiError;\n`;
    writeFileSync(join(folder, `example-${at}.ts`), head + text);
  });
  const options = { extends: join(ROOT, 'tsconfig.json'), include: ['*.ts'] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(options));
  const env = { ...process.env, ...FRUGAL };
  const tsc = Bun.spawn([...TSC, '--project', folder], { cwd: ROOT, stdout: 'pipe', env });
  const output = await new Response(tsc.stdout).text();
  const lines = output.split('\n').filter((line) => line.includes('error TS'));
  const of = (at: number) => lines.filter((line) => line.includes(`example-${at}.ts(`));
  const each = bodies.map((_, at) => of(at).join('\n'));
  // An error anywhere else is an error of the client itself.
  expect(lines.length).toBe(each.filter((text) => text !== '').flatMap((text) => text.split('\n')).length);
  return each;
}

test('every resource has an example', () => {
  const text = examples.join('\n');
  const resources = Object.keys(appRouter._def.procedures).map((name) => name.split('.')[0]!);
  expect([...new Set(resources)].filter((name) => !text.includes(`api.${name}.`))).toEqual([]);
});

test('every example compiles, and one with a mistake does not', async () => {
  const mistake = 'await api.connections.update.mutate({ connection_id: 1 });\n';
  const found = await compile([...examples, mistake]);
  expect(found.pop()).toContain('TS2322');
  expect(found).toEqual(examples.map(() => ''));
}, 180_000);
