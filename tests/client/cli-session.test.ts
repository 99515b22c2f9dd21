import { afterAll, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createApp } from '../../server/http/app.ts';
import { testApi } from '../support/api.ts';
import { commandLine } from '../support/cli.ts';
import { testDeps } from '../support/database.ts';

const service = await testDeps();
const api = testApi(service);
const app = createApp(service.deps).listen({ hostname: '127.0.0.1', port: 0 });
afterAll(() => app.server?.stop(true));
const url = `http://127.0.0.1:${app.server!.port}`;
const key = service.api_key;
const cli = commandLine({ url, key });

describe('login', () => {
  test('prompts for the key without echo and stores it readable by the user alone', async () => {
    const fresh = commandLine();
    const session = fresh.terminal(['login', url]);
    await session.sees('API key');
    session.type(`${key}\r`);
    await session.sees('Signed in at');
    expect(await session.ended()).toBe(0);
    expect(session.screen()).not.toContain(key.slice(0, 12));
    expect(statSync(fresh.file).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(fresh.file, 'utf8'))).toEqual({ url, key });
    expect((await fresh.run(['whoami'])).out).toContain('Administrator');
  });

  test('stores only a valid key: exit code 3', async () => {
    const fresh = commandLine();
    const { code, err } = await fresh.run(['login', url, '--key-stdin'], {
      input: 'no-such-api-key-here-0123456789\n',
    });
    expect(code).toBe(3);
    expect(err).toMatch(/invalid_token, request [\w-]{36}/);
    expect(existsSync(fresh.file)).toBe(false);
  });

  test('the environment overrides the stored key; logout removes it', async () => {
    const fresh = commandLine();
    expect((await fresh.run(['login', url, '--key-stdin'], { input: key })).code).toBe(0);
    const wrong = { DATA_PIPELINES_KEY: 'no-such-api-key-here-0123456789' };
    expect((await fresh.run(['whoami'], { env: wrong })).code).toBe(3);
    await fresh.run(['logout']);
    expect(existsSync(fresh.file)).toBe(false);
    expect(await fresh.run(['whoami'])).toMatchObject({ code: 3, err: expect.stringContaining('Not signed in') });
  });
});

describe('exit codes', () => {
  test('2 for invalid usage', async () => {
    for (const wrong of [
      ['runz'],
      ['run'],
      ['run', 'x', '--folow'],
      ['connections', 'create', '--cron', 'x', '--every', '5'],
    ]) {
      expect({ wrong, code: (await cli.run(wrong)).code }).toEqual({ wrong, code: 2 });
    }
  });

  test('3 without the permission', async () => {
    const viewer = commandLine({ url, key: await api.keyWith([]) });
    const { code, err } = await viewer.run(['sources', 'create', 'sample', '--name', 'x']);
    expect(code).toBe(3);
    expect(err).toContain('permission_denied');
  });

  test('4 for an unknown item', async () => {
    expect(await cli.run(['connections', 'show', 'nothing'])).toMatchObject({
      code: 4,
      out: '',
      err: expect.stringContaining('No connection matches "nothing"'),
    });
  });

  test('5 if the service is unreachable', async () => {
    const gone = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() });
    await gone.stop(true);
    const { code, err } = await commandLine({ url: gone.url.origin, key }).run(['whoami']);
    expect(code).toBe(5);
    expect(err).toContain('network_error');
  });
});

describe('keys', () => {
  test('rotate replaces the stored key', async () => {
    const fresh = commandLine();
    const own = await api.keyWith([]);
    await fresh.run(['login', url, '--key-stdin'], { input: own });
    const { code, out } = await fresh.run(['keys', 'rotate', '--json', '--grace-hours', '0']);
    expect(code).toBe(0);
    const { api_key } = JSON.parse(out);
    expect(JSON.parse(readFileSync(fresh.file, 'utf8')).key).toBe(api_key);
    expect((await fresh.run(['keys', 'list'])).out).toContain('(in use)');
    expect((await commandLine({ url, key: own }).run(['whoami'])).code).toBe(3);
  });
});

describe('completion', () => {
  test('proposes commands, flags and values', async () => {
    const words = async (...args: string[]) => (await cli.run(['__complete', ...args])).out.trim().split('\n');
    expect(await words('con')).toEqual(['connectors', 'connections']);
    expect(await words('runs', '')).toEqual(expect.arrayContaining(['list', 'show', 'stop', 'rerun']));
    expect(await words('logs', '--si')).toEqual(['--side']);
    expect(await words('logs', '--side', '')).toEqual(['source', 'destination']);
  });

  test('works in bash', async () => {
    const { out: script } = await cli.run(['completion', 'bash']);
    const main = `${import.meta.dir}/../../client/cli/main.ts`;
    const text = `data-pipelines() { '${process.execPath}' '${main}' "$@"; }
      ${script}
      COMP_WORDS=(data-pipelines connections re); COMP_CWORD=2; _data_pipelines; echo "\${COMPREPLY[@]}"`;
    const bash = Bun.spawn(['bash', '-c', text], { stdout: 'pipe', stderr: 'pipe' });
    expect((await new Response(bash.stdout).text()).trim().split(' ').toSorted()).toEqual([
      'refresh-catalog',
      'resume',
    ]);
    expect(await new Response(bash.stderr).text()).toBe('');
  });
});

describe('output', () => {
  test('is plain in a pipe, coloured and fitted to the width on a terminal', async () => {
    const piped = (await cli.run(['connectors'])).out;
    expect(piped).not.toContain('\u001b');
    const session = cli.terminal(['connectors'], { columns: 60 });
    await session.ended();
    await session.sees('postgres');
    const longest = Math.max(
      ...session
        .screen()
        .split('\n')
        .map((line) => Bun.stringWidth(line.trimEnd())),
    );
    expect(longest).toBeLessThanOrEqual(60);
    expect(longest).toBeLessThan(Math.max(...piped.split('\n').map((line) => line.length)));
  });

  test('respects NO_COLOR', async () => {
    let raw = '';
    const child = Bun.spawn([process.execPath, `${import.meta.dir}/../../client/cli/main.ts`, 'connectors'], {
      env: { PATH: process.env.PATH, NO_COLOR: '1', DATA_PIPELINES_URL: url, DATA_PIPELINES_KEY: key },
      terminal: { cols: 100, rows: 40, data: (_, bytes) => void (raw += new TextDecoder().decode(bytes)) },
    });
    await child.exited;
    expect(raw).not.toContain('\u001b[2m');
  });
});

test('the compiled program is self-contained', async () => {
  const { folder } = cli;
  const program = `${folder}/data-pipelines`;
  const build = Bun.spawn(
    [
      process.execPath,
      'build',
      `${import.meta.dir}/../../client/cli/main.ts`,
      '--compile',
      '--minify',
      '--outfile',
      program,
    ],
    { stdout: 'ignore', stderr: 'pipe' },
  );
  expect(await build.exited).toBe(0);
  const compiled = commandLine({ url, key }, [program]);
  expect(await compiled.run(['whoami', '--json'])).toMatchObject({ code: 0, err: '' });
  expect((await compiled.run(['--help'])).out).toContain('Exit codes:');
}, 60_000);
