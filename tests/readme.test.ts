import { afterAll, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { proposeCompletions } from '@stricli/core';
import postgres from 'postgres';
import type { z } from 'zod';
import { app as program } from '../client/cli/app.ts';
import { readPipelines } from '../client/cli/apply/document.ts';
import { createCli } from '../client/cli/context.ts';
import { takeContext } from '../client/cli/global-options.ts';
import { createApp } from '../server/http/app.ts';
import { UpdateConnectionRequest } from '../server/resources/connections/schema.ts';
import { readConfig } from '../server/platform/config.ts';
import { allConnectors } from '../server/connectors/registry.ts';
import { createPlainDatabase, TEST_API_KEY, type TestDatabase, testDeps } from './support/database.ts';
import { temporaryFolder } from './support/postgres.ts';
import { spawnWorker } from './support/worker-process.ts';

const ROOT = join(import.meta.dir, '..');
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
const documents = ['README.md', ...new Bun.Glob('{server,client}/**/*.md').scanSync({ cwd: ROOT })].map((path) => ({
  path,
  text: readFileSync(join(ROOT, path), 'utf8'),
}));
// At the top level, since programs that a test starts end with it.
const service = await startService();

const section = (title: string, text = readme) =>
  text.split(/^## /m).find((part) => part.startsWith(`${title}\n`)) ?? '';
const blocks = (title: string, language: string) =>
  [...section(title).matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, 'g'))].map(([, code]) => code ?? '');
const rowsOf = (title: string, text = readme) =>
  [...section(title, text).matchAll(/^\| `(\w+)` \| (.*) \|$/gm)].map(([, name, rest]) => [
    name,
    ...rest!.split(/ ?\| ?/),
  ]);

/** The output that the comments describe; `…` stands for the rest of the line. */
const promised = (script: string) =>
  [...script.matchAll(/^(?:.*\S {3}|)# (.+)$/gm)].map(([, line]) => line!.replace(/…$/, ''));

describe('the README', () => {
  test('lists every connector, and the modes of each destination', () => {
    const real = allConnectors().filter(({ hidden }) => !hidden);
    const expected = [...Map.groupBy(real, ({ name }) => name)].map(([name, sides]) => {
      const modes = sides.find((one) => one.type === 'destination')?.supported_destination_sync_modes.join(', ');
      return { name, reads: sides.some(({ type }) => type === 'source'), modes: modes || null };
    });
    const listed = rowsOf('Connectors').map(([name, reads = '', modes = '']) => ({
      name,
      reads: reads.trim() !== '',
      modes: /^[\w, ]*(append|overwrite)/.test(modes) ? modes.trim() : null,
    }));
    const byName = (a: { name?: string }, b: { name?: string }) => (a.name ?? '').localeCompare(b.name ?? '');
    expect(listed.toSorted(byName)).toEqual(expected.toSorted(byName));
    const readers = real.filter((one) => one.type === 'source').filter(({ name }) => name !== 'webhook');
    expect(readers.every((one) => one.supported_sync_modes.join() === 'full_refresh,incremental')).toBeTrue();
  });

  test('lists every setting with its default', () => {
    const { SECRET_KEY: _, ...defaults } = readConfig({
      SECRET_KEY: 'given, so that readConfig generates no key file',
    });
    const more = readFileSync(join(ROOT, 'server/docs/guides/operation.md'), 'utf8');
    const rows = [...rowsOf('Configuration'), ...rowsOf('More settings', more)];
    const documented = new Map(rows.map(([name, value]) => [name, value]));
    expect([...documented.keys()].toSorted()).toEqual([...Object.keys(defaults), 'SECRET_KEY'].toSorted());
    const simple = Object.entries(defaults).filter(([name]) => /^`[^`]*`$/.test(documented.get(name) ?? ''));
    expect(simple.length).toBeGreaterThan(9);
    const shown = (value: unknown) => (typeof value === 'boolean' ? String(Number(value)) : String(value));
    // Derived settings are described in words.
    for (const [name, value] of simple.filter(([setting]) => !['PUBLIC_URL', 'DATA_DIR'].includes(setting))) {
      expect(`${name} ${documented.get(name)}`).toBe(`${name} \`${shown(value)}\``);
    }
  });

  test('has at most 1,500 words and a table of contents', () => {
    expect(readme.trim().split(/\s+/).length).toBeLessThanOrEqual(1500);
    const titles = [...readme.matchAll(/^## (.+)$/gm)].map(([, title]) => title);
    const listed = [...readme.matchAll(/^- \[([^\]]+)\]\(#[\w-]+\)$/gm)].map(([, title]) => title);
    expect(listed).toEqual(titles);
  });

  test('has examples that print what it says', async () => {
    const folder = await workFolder();
    const scripts = blocks('First pipeline by API', 'sh');
    const { out, errors } = await shell(folder, scripts.join('\n'));
    expect(errors).toBe('');
    const lines = out.trim().split('\n');
    const expected = promised(scripts.join('\n'));
    expect(expected.length).toBeGreaterThan(6);
    expect(lines.map((line, at) => line.slice(0, expected[at]?.length ?? 0) || line)).toEqual(expected);
  });

  test('has a quick start that copies one PostgreSQL database into another', async () => {
    const [source, destination] = await Promise.all([createPlainDatabase(), createPlainDatabase()]);
    const shop = postgres(source.url, { max: 1 });
    await shop`create table customers as select n as id from generate_series(1, 7) n`;
    await shop.end();
    const flags = ({ url }: TestDatabase) => {
      const { hostname, port, pathname, username, password } = new URL(url);
      const values = { host: hostname, port, database: pathname.slice(1), username, password };
      return Object.entries(values)
        .map(([name, value]) => `--set ${name}='${decodeURIComponent(value)}'`)
        .join(' ');
    };
    const script = blocks('Quick start', 'sh').at(-1)!;
    const own = [source, destination].reduce(
      (text, database) => text.replace(/--set host=\w+\.example\.com .*$/m, flags(database)),
      script,
    );
    const { out, errors } = await shell(await workFolder(), own);
    expect(errors).toBe('');
    expect(out).toContain('succeeded: 7 rows');
    const analytics = postgres(destination.url, { max: 1 });
    expect(await analytics`select count(*)::int as count from shop.customers`).toEqual([{ count: 7 }] as never);
    await analytics.end();
  }, 60_000);
});

describe('README, guides and documents', () => {
  test('link to files that exist', () => {
    const missing = documents.flatMap(({ path, text }) =>
      [...text.matchAll(/\]\(([\w./-]+)(?:#[\w-]+)?\)/g)]
        .map(([, target]) => join(path, '..', target!))
        .filter((target) => !existsSync(join(ROOT, target)))
        .map((target) => `${path} -> ${target}`),
    );
    expect(missing).toEqual([]);
  });

  test('use commands and flags that the command line has', async () => {
    const unknown: string[] = [];
    for (const { path, text } of documents) {
      for (const { words } of commandsIn(text).map(takeContext)) {
        const route = await routeOf(words);
        const known = await completions([...route, '--']);
        const wrong = words.filter((word) => word.startsWith('--') && !known.includes(word.split('=')[0]!));
        if (route.length === 0 || wrong.length > 0) unknown.push(`${path}: ${words.join(' ')}`);
      }
    }
    expect(unknown).toEqual([]);
  });

  test('have pipeline files that apply can read', () => {
    const secrets = ['SHOP_PASSWORD', 'DWH_PASSWORD'];
    const files = documents.flatMap(({ text }) => [...text.matchAll(/```yaml\n(version: 1\n[^]*?)```/g)]);
    expect(files.length).toBeGreaterThan(0);
    for (const [, yaml] of files) {
      const filled = secrets.reduce((text, name) => text.replaceAll(`\${${name}}`, 'secret'), yaml!);
      expect(readPipelines(filled, 'guide').length).toBeGreaterThan(3);
    }
  });

  test('name settings of the service and parameters of connectors', () => {
    const parameters = new Set(
      allConnectors().flatMap((one) => Object.keys((one.config as unknown as z.ZodObject).shape)),
    );
    const settings = new Set(Object.keys(UpdateConnectionRequest.shape));
    const wrong = documents.flatMap(({ path, text }) =>
      commandsIn(text).flatMap((words) => {
        const known = words[0] === 'connections' ? settings : parameters;
        const pairs = words.filter((_, at) => words[at - 1] === '--set');
        return pairs.filter((pair) => !known.has(pair.split('=')[0]!)).map((pair) => `${path}: ${pair}`);
      }),
    );
    expect(wrong).toEqual([]);
  });
});

/** Every `data-pipelines …` of the shell blocks, as words. */
function commandsIn(text: string): string[][] {
  const scripts = [...text.matchAll(/```sh\n([^]*?)```/g)].map(([, script]) => script!.replaceAll('\\\n', ' '));
  return scripts
    .flatMap((script) => script.split('\n'))
    .flatMap((line) => [...line.matchAll(/(?:^|[($] ?|")(?:\.\/)?data-pipelines ([^|)]+)/g)])
    .map(([, rest]) => rest!.match(/'[^']*'|"[^"]*"|[^\s'"]+(?:=(?:'[^']*'|"[^"]*"))?/g) ?? []);
}

const cli = createCli(process);
const completions = async (words: string[]) =>
  (await proposeCompletions(program, words, cli)).map(({ completion }) => completion);

/** The words that name a command. */
async function routeOf(words: string[]): Promise<string[]> {
  const route: string[] = [];
  for (const word of words) {
    if (word.startsWith('-') || !(await completions([...route, word])).includes(word)) break;
    route.push(word);
  }
  return route;
}

async function startService() {
  const context = await testDeps();
  const app = createApp(context.deps).listen({ hostname: '127.0.0.1', port: 0 });
  afterAll(() => app.server?.stop(true));
  // Silent, since the database is dropped before the worker is stopped.
  spawnWorker(context, { LOG_LEVEL: 'silent' });
  mkdirSync(context.deps.config.DATA_DIR, { recursive: true });
  return { url: `http://127.0.0.1:${app.server?.port}`, data: context.deps.config.DATA_DIR };
}

/** A folder like the checkout after `up` and `cli:build`. */
async function workFolder(): Promise<string> {
  const { data } = service;
  const folder = temporaryFolder();
  symlinkSync(data, join(folder, '.data'));
  writeFileSync(
    join(folder, 'data-pipelines'),
    `#!/bin/sh\nexec '${process.execPath}' '${join(ROOT, 'client/cli/main.ts')}' "$@"\n`,
    { mode: 0o755 },
  );
  return folder;
}

async function shell(cwd: string, script: string): Promise<{ out: string; errors: string }> {
  const { url } = service;
  const client = join(ROOT, `tests/readme-example-${process.pid}.ts`);
  afterAll(() => rmSync(client, { force: true }));
  const [typed = ''] = blocks('First pipeline by API', 'ts');
  writeFileSync(client, typed.replace("'./client/api.ts'", "'../client/api.ts'"));
  const text = script
    .replace('http://127.0.0.1:8080', url)
    .replace('dpm_…', TEST_API_KEY)
    .replace('npx -y bun@1.4.5 try.ts', `'${process.execPath}' '${client}'`);
  const bash = Bun.spawn(['bash', '-euo', 'pipefail', '-c', text], {
    cwd,
    env: { ...process.env, DATA_PIPELINES_URL: url, DATA_PIPELINES_KEY: TEST_API_KEY },
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [out, errors] = await Promise.all([new Response(bash.stdout).text(), new Response(bash.stderr).text()]);
  return { out, errors };
}
