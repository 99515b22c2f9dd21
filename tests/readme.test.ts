import { afterAll, describe, expect, test } from 'bun:test';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createApp } from '../server/http/app.ts';
import { readConfig } from '../server/platform/config.ts';
import { allConnectors } from '../server/connectors/registry.ts';
import { TEST_API_KEY, testDeps } from './support/database.ts';
import { temporaryFolder } from './support/postgres.ts';
import { spawnWorker } from './support/worker-process.ts';

const ROOT = join(import.meta.dir, '..');
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
const section = (title: string) => readme.split(/^## /m).find((part) => part.startsWith(`${title}\n`)) ?? '';
const blocks = (title: string, language: string) =>
  [...section(title).matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, 'g'))].map(([, code]) => code ?? '');
const rowsOf = (title: string) =>
  [...section(title).matchAll(/^\| `(\w+)` \| (.*) \|$/gm)].map(([, name, rest]) => [name, ...rest!.split(' | ')]);

/** What the comments say that the commands print; `…` stands for the rest of the line. */
const promised = (script: string) =>
  [...script.matchAll(/^(?:.*\S {3}|)# (.+)$/gm)].map(([, line]) => line!.replace(/…$/, ''));

describe('the README', () => {
  test('lists every connector with its modes', () => {
    const modes = (one: ReturnType<typeof allConnectors>[number]) =>
      one.type === 'source' ? one.supported_sync_modes : one.supported_destination_sync_modes;
    const real = allConnectors().filter(({ hidden }) => !hidden);
    const told = rowsOf('Connectors').map(([name, side, , column]) =>
      `${name} ${side} ${(column ?? '').trim()}`.trim(),
    );
    expect(told.toSorted()).toEqual(
      real.map((one) => `${one.name} ${one.type} ${modes(one).join(', ')}`.trim()).toSorted(),
    );
  });

  test('lists every setting with its default', () => {
    const { SECRET_KEY: _, ...defaults } = readConfig({ SECRET_KEY: 'only so that none is made for this test' });
    const told = new Map(rowsOf('Configuration').map(([name, value]) => [name, value]));
    expect([...told.keys()].toSorted()).toEqual([...Object.keys(defaults), 'SECRET_KEY'].toSorted());
    const simple = Object.entries(defaults).filter(([name]) => /^`[^`]*`$/.test(told.get(name) ?? ''));
    expect(simple.length).toBeGreaterThan(9);
    const shown = (value: unknown) => (typeof value === 'boolean' ? String(Number(value)) : String(value));
    // Those that are derived from others are told by how they are.
    for (const [name, value] of simple.filter(([setting]) => !['PUBLIC_URL', 'DATA_DIR'].includes(setting))) {
      expect(`${name} ${told.get(name)}`).toBe(`${name} \`${shown(value)}\``);
    }
  });

  test('names files that exist', () => {
    const missing = [...readme.matchAll(/\]\(([\w./-]+)\)/g)].filter(([, path]) => !existsBelow(path!));
    expect(missing).toEqual([]);
  });

  test('has examples that answer what it says', async () => {
    const context = await testDeps();
    const app = createApp(context.deps).listen({ hostname: '127.0.0.1', port: 0 });
    afterAll(() => app.server?.stop(true));
    spawnWorker(context);
    const folder = temporaryFolder();
    mkdirSync(context.deps.config.DATA_DIR, { recursive: true });
    symlinkSync(context.deps.config.DATA_DIR, join(folder, '.data'));
    const client = join(ROOT, `tests/readme-example-${process.pid}.ts`);
    afterAll(() => rmSync(client, { force: true }));
    const [typed = ''] = blocks('A first pipeline', 'ts');
    writeFileSync(client, typed.replace("'./client/api.ts'", "'../client/api.ts'"));

    const scripts = [...blocks('A first pipeline', 'sh'), ...blocks('Custom runs, schedules, triggers', 'sh')];
    const script = scripts
      .join('\n')
      .replace('http://127.0.0.1:8080', `http://127.0.0.1:${app.server?.port}`)
      .replace('dpm_…', TEST_API_KEY)
      .replace('npx -y bun@1.4.5 try.ts', `'${process.execPath}' '${client}'`);
    const shell = Bun.spawn(['bash', '-euo', 'pipefail', '-c', script], {
      cwd: folder,
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const [out, errors] = await Promise.all([new Response(shell.stdout).text(), new Response(shell.stderr).text()]);
    expect(errors).toBe('');
    const lines = out.trim().split('\n');
    const told = promised(scripts.join('\n'));
    expect(told.length).toBeGreaterThan(6);
    expect(lines.map((line, at) => line.slice(0, told[at]?.length ?? 0) || line)).toEqual(told);
  });
});

function existsBelow(path: string): boolean {
  try {
    readFileSync(join(ROOT, path));
    return true;
  } catch {
    return false;
  }
}
