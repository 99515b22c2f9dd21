import { afterAll, expect, test } from 'bun:test';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AnySource } from '../../server/connectors/contract/connector.ts';
import { AuthenticationError } from '../../server/connectors/contract/errors.ts';
import { allConnectors, findConnector } from '../../server/connectors/registry.ts';
import { readBatches, requestOf } from './reading.ts';
import { FRUGAL, TSC } from '../support/compiler.ts';
import { limitHangs } from '../support/hangs.ts';

limitHangs();

const folder = join(import.meta.dir, '../../server/connectors');
const file = join(import.meta.dir, `readme-example-${process.pid}.ts`);
afterAll(() => rmSync(file, { force: true }));

test('the example of the README compiles, checks, discovers and reads', async () => {
  const readme = await Bun.file(join(folder, 'README.md')).text();
  const code = /```ts\n([^]*?)```/.exec(readme)?.[1] ?? '';
  writeFileSync(file, code.replaceAll("'./", "'../../server/connectors/"));
  const flags = ['--ignoreConfig', '--strict', '--noUncheckedIndexedAccess', '--skipLibCheck', '--target', 'ESNext'];
  const modules = [
    '--module',
    'ESNext',
    '--moduleResolution',
    'bundler',
    '--allowImportingTsExtensions',
    '--types',
    'bun-types',
  ];
  const env = { ...process.env, ...FRUGAL };
  const compiled = Bun.spawnSync([...TSC, ...flags, ...modules, file], { stdout: 'pipe', env });
  expect(compiled.stdout.toString()).toBe('');
  expect(compiled.exitCode).toBe(0);

  const { items } = (await import(file)) as { items: AnySource };
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      if (request.headers.get('authorization') !== 'Bearer right') return new Response('', { status: 401 });
      const after = Number(new URL(request.url).searchParams.get('after'));
      return Response.json(
        [1, 2, 3].map((id) => ({ id, name: id === 2 ? null : `n${id}` })).filter(({ id }) => id > after),
      );
    },
  });
  const contextOf = (token: string) =>
    ({ config: { url: server.url.origin, token }, fetch, signal: new AbortController().signal }) as never;
  try {
    expect((await items.check(contextOf('right'))).checks).toHaveLength(1);
    expect(await items.check(contextOf('wrong')).catch((error: unknown) => error)).toBeInstanceOf(AuthenticationError);
    const [stream] = await items.discover(contextOf('right'));
    const batches = await readBatches(items, contextOf('right'), requestOf(stream as NonNullable<typeof stream>));
    expect(batches.flatMap(({ rows }) => rows)).toEqual([
      ['1', 'n1'],
      ['2', null],
      ['3', 'n3'],
    ]);
    expect(batches.at(-1)?.state).toEqual({ cursor: '3' });
  } finally {
    await server.stop(true);
  }
});

const README = await Bun.file(join(folder, 'README.md')).text();
/** A connector's folder is its name with hyphens. */
const folderOf = ({ name }: { name: string }) => name.replaceAll('_', '-');
/** A section of the common README also documents a connector, until it moves to the connector's folder. */
const hasSection = ({ name }: { name: string }) => README.includes(`### \`${name}\``);

test('every registered connector has a README in its folder, and the common README links to it', () => {
  const links = new Set([...README.matchAll(/\]\(([^)#:]+)\)/g)].map(([, path]) => path));
  for (const connector of allConnectors()) {
    const path = `${folderOf(connector)}/README.md`;
    expect(links).toContain(path);
    expect({ path, exists: hasSection(connector) || existsSync(join(folder, path)) }).toEqual({ path, exists: true });
  }
});

test('every registered connector has the name and the type by which it is registered', () => {
  for (const connector of allConnectors()) expect(findConnector(connector.type, connector.name)).toBe(connector);
});
