import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { createApp } from '../../server/http/app.ts';
import { loadConsole } from '../../server/http/console/bundle.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';

const context = await testDeps();
const { raw } = testApi(context);
const app = createApp(context.deps);
// Bundling takes a second, on a busy machine much longer.
setDefaultTimeout(60_000);

const MAX_GZIPPED_BYTES = 350_000;
const MAX_WHOLE_BYTES = 410_000;

const page = async (path: string) => app.handle(new Request(`http://localhost${path}`));
const asset = (path: string, encoding: string) =>
  app.handle(new Request(`http://localhost${path}`, { headers: { 'accept-encoding': encoding } }));
const assetsOf = (html: string) => [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path!);

describe('the console', () => {
  test('is at most 350 kB gzipped for the first page', async () => {
    const { assets, entry } = await loadConsole(context.deps);
    const textOf = (name: string) => new TextDecoder().decode(assets.get(name)!.plain);
    const scripts = [...assets.keys()].filter((name) => name.endsWith('.js'));
    const overview = scripts.filter((name) => textOf(name).includes('Connections that need attention come first'));
    expect(overview).toHaveLength(1);
    const first = new Set([...assets.keys()].filter((name) => !name.endsWith('.js')));
    for (const name of [entry.script, entry.scheme, ...overview]) first.add(name);
    // Iterating over a set includes elements that are added meanwhile. What `import()` names is loaded later.
    for (const name of first) {
      const imported = scripts.filter((other) => new RegExp(`(from|import) ?"[^"]*${other}"`).test(textOf(name)));
      for (const other of imported) first.add(other);
    }
    const sizeOf = (names: Iterable<string>) =>
      [...names].reduce((sum, name) => sum + assets.get(name)!.gzip.byteLength, 0);
    expect(first.size).toBeLessThan(scripts.length / 2);
    expect(sizeOf(first)).toBeGreaterThan(50_000);
    expect(sizeOf(first)).toBeLessThan(MAX_GZIPPED_BYTES);
    expect(sizeOf(assets.keys())).toBeLessThan(MAX_WHOLE_BYTES);
  });

  test('is split: a page is loaded when first opened', async () => {
    const { assets, entry } = await loadConsole(context.deps);
    const scripts = [...assets.keys()].filter((name) => name.endsWith('.js') && name !== entry.script);
    expect(scripts.length).toBeGreaterThan(8);
  });

  test('starts with the entry script', async () => {
    const { assets, entry } = await loadConsole(context.deps);
    const scripts = [...assets.keys()].filter((name) => name.endsWith('.js') && name !== entry.scheme);
    const textOf = (name: string) => new TextDecoder().decode(assets.get(name)!.plain);
    const reached = new Set([entry.script]);
    // Iterating over a set includes elements that are added meanwhile.
    for (const name of reached) {
      const text = textOf(name);
      for (const other of scripts) if (text.includes(other)) reached.add(other);
    }
    expect([...reached].toSorted()).toEqual(scripts.toSorted());
    expect(textOf(entry.script).includes('The element #console is missing')).toBe(true);
  });

  test('is cached in DATA_DIR for the next start; a damaged cache is rebuilt', async () => {
    const DATA_DIR = mkdtempSync(join(tmpdir(), 'data-pipelines-console-'));
    const deps = { ...context.deps, config: { ...context.deps.config, DATA_DIR } };
    const first = await loadConsole(deps);
    const [kept] = readdirSync(join(DATA_DIR, 'console'));
    expect(await loadConsole(deps)).toEqual(first);
    rmSync(join(DATA_DIR, 'console', kept!, first.entry.script));
    expect((await loadConsole(deps)).assets.size).toBe(first.assets.size);
    rmSync(DATA_DIR, { recursive: true });
  });

  test('is served even if it cannot be cached', async () => {
    const deps = { ...context.deps, config: { ...context.deps.config, DATA_DIR: '/proc/nowhere' } };
    expect((await loadConsole(deps)).assets.size).toBeGreaterThan(3);
  });

  test.each(['/', '/console', '/console/connections', '/console/connections/x/runs/y', '/invitation', '/cases/x'])(
    '%s is a console page with a strict policy',
    async (path) => {
      const answer = await page(path);
      expect(answer.status).toBe(200);
      expect(answer.headers.get('content-type')).toStartWith('text/html');
      expect(answer.headers.get('cache-control')).toBe('no-cache');
      const policy = answer.headers.get('content-security-policy')!;
      expect(policy).not.toMatch(/unsafe|\*|https?:/);
      for (const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]) {
        expect(policy).toInclude(rule);
      }
      const html = await answer.text();
      expect(html).not.toMatch(/<style|<script>| style=| on\w+=/);
      expect(assetsOf(html)).toHaveLength(3);
    },
  );

  test.each(['/connections', '/users', '/consoles', '/case', '/assets/none.js', '/anything'])(
    '%s is not a console page',
    async (path) => {
      const answer = await page(path);
      expect([401, 404]).toContain(answer.status);
      expect(answer.headers.get('content-type')).toStartWith('application/json');
    },
  );

  test('its files are immutable and compressed', async () => {
    const paths = assetsOf(await (await page('/')).text());
    for (const path of paths) {
      const plain = await asset(path, 'identity');
      expect(plain.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(plain.headers.get('content-encoding')).toBeNull();
      expect(plain.headers.get('content-type')).toMatch(/^text\/(javascript|css)/);
      const text = Buffer.from(await plain.arrayBuffer());
      const [br, gzip] = await Promise.all([asset(path, 'gzip, br'), asset(path, 'gzip')]);
      expect(br.headers.get('content-encoding')).toBe('br');
      expect(gzip.headers.get('content-encoding')).toBe('gzip');
      expect(brotliDecompressSync(Buffer.from(await br.arrayBuffer())).equals(text)).toBeTrue();
      expect(gunzipSync(Buffer.from(await gzip.arrayBuffer())).equals(text)).toBeTrue();
    }
  });

  test('leaves the API paths unchanged', async () => {
    expect((await raw('/connections')).status).toBe(200);
  });
});
