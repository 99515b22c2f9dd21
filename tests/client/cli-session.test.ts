import { afterAll, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import packageFile from '../../package.json' with { type: 'json' };
import { app as commands } from '../../client/cli/app.ts';
import { sealAudit } from '../../server/api/audit/chain.ts';
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

test('the file that the service serves works by itself, outside of the checkout', async () => {
  const { folder } = commandLine();
  const file = join(folder, 'data-pipelines');
  const response = await fetch(`${url}/cli`);
  expect(response.headers.get('content-disposition')).toBe('attachment; filename="data-pipelines"');
  await Bun.write(file, response);
  // A shell takes Bun if there is one, and else Node.
  for (const program of [
    [process.execPath, file],
    ['node', file],
    ['sh', file],
  ]) {
    const served = commandLine({ url, key }, program);
    expect((await served.run(['--version'])).out.trim()).toBe(packageFile.version);
    expect(await served.run(['whoami', '--jq', '.email'])).toMatchObject({ code: 0, out: 'admin@localhost\n' });
    const empty = await served.run(['apply', '-f', '-', '--dry-run'], { input: 'version: 1\n' });
    expect(empty).toMatchObject({ code: 0, out: expect.stringContaining('No changes') });
    expect(await served.run(['runs', 'show', 'none'])).toMatchObject({ code: 4 });
    expect((await served.run(['api', '/openapi.json'])).out).toContain('"openapi"');
  }
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
    for (const wrong of [['runz'], ['run'], ['run', 'x', '--folow']]) {
      expect((await cli.run(wrong)).err).toContain('Add --help to see the usage');
    }
  });

  test('lines of the usage fit into a terminal', async () => {
    const { out } = await cli.run(['--help']);
    const usage = out.slice(out.indexOf('USAGE'), out.indexOf('\n\n')).split('\n');
    expect(usage.length).toBeGreaterThan(30);
    expect(usage.filter((line) => line.length > 120)).toEqual([]);
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
    expect(err).toContain(`Cannot reach ${gone.url.origin}: the connection was refused.`);
    expect(await commandLine({ url: gone.url.origin, key }).run(['api', '/connections'])).toMatchObject({
      code: 5,
      err,
    });
    const unknown = await commandLine({ url: 'http://no-such-host.invalid', key }).run(['whoami']);
    expect(unknown.err).toContain('http://no-such-host.invalid: the host name is unknown');
  });
});

describe('addresses and contexts', () => {
  test('a path in the address of the service is kept', async () => {
    const proxy = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch({ url: asked, method, headers, body }) {
        const { pathname, search } = new URL(asked);
        if (!pathname.startsWith('/pipelines/')) return new Response('elsewhere', { status: 404 });
        headers.set('accept-encoding', 'identity');
        return fetch(url + pathname.slice('/pipelines'.length) + search, { method, headers, body });
      },
    });
    try {
      const behind = commandLine();
      const login = await behind.run(['login', `${proxy.url.origin}/pipelines/`, '--key-stdin'], { input: key });
      expect(login).toMatchObject({ code: 0, out: expect.stringContaining(`${proxy.url.origin}/pipelines as`) });
      expect((await behind.run(['api', '/users/me', '--jq', '.email'])).out).toContain('@');
      expect((await behind.run(['open', 'cases', '--print'])).out.trim()).toBe(
        `${proxy.url.origin}/pipelines/console/cases`,
      );
    } finally {
      await proxy.stop(true);
    }
  });

  test('each context has its own service and key', async () => {
    const fresh = commandLine();
    const other = await api.keyWith([]);
    await fresh.run(['login', url, '--key-stdin'], { input: key });
    await fresh.run(['login', url, '--key-stdin', '--context', 'staging'], { input: other });
    const email = async (...args: string[]) => (await fresh.run(['whoami', '--jq', '.email', ...args])).out.trim();
    const [first, second] = [await email(), await email('--context', 'staging')];
    expect(second).not.toBe(first);
    await fresh.run(['contexts', 'use', 'staging']);
    expect(await email()).toBe(second);
    expect(await email('--context=default')).toBe(first);
    const named = await fresh.run(['whoami', '--jq', '.email', '--context', 'default'], {
      env: { DATA_PIPELINES_KEY: other, DATA_PIPELINES_URL: url },
    });
    expect(named.out.trim()).toBe(first);
    const listed = JSON.parse((await fresh.run(['contexts', 'list', '--json'])).out);
    expect(listed).toEqual([
      { name: 'default', url, is_current: false },
      { name: 'staging', url, is_current: true },
    ]);
    expect((await fresh.run(['contexts', 'delete', 'staging'])).code).toBe(0);
    expect(await email()).toBe(first);
    expect((await fresh.run(['whoami', '--context', 'staging'])).code).toBe(3);
    expect((await fresh.run(['whoami', '--context', '../login'])).code).toBe(2);
  });
});

describe('keys', () => {
  test('revoke asks, and takes a whole prefix only', async () => {
    const own = await api.keyWith([]);
    const old = commandLine({ url, key: own });
    const { api_key, previous } = JSON.parse((await old.run(['keys', 'rotate', '--json'])).out);
    const { prefix } = previous;
    const holder = commandLine({ url, key: api_key });
    expect(await holder.run(['keys', 'revoke', prefix])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--yes'),
    });
    expect((await holder.run(['keys', 'revoke', prefix.slice(0, 5), '--yes'])).code).toBe(4);
    expect((await holder.run(['keys', 'revoke', '', '--yes'])).code).toBe(2);
    expect((await old.run(['whoami'])).code).toBe(0);
    expect((await holder.run(['keys', 'revoke', prefix, '--yes'])).code).toBe(0);
    expect((await old.run(['whoami'])).code).toBe(3);
  });

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

describe('keys of programs', () => {
  test('are created for a service account, listed and revoked after a confirmation', async () => {
    await cli.run(['service-accounts', 'create', 'ci', '--role', 'Creator']);
    expect((await cli.run(['service-accounts', 'list'])).out).toContain('Creator');
    const created = await cli.run([
      'keys',
      'create',
      'nightly',
      '--service-account',
      'ci',
      '--scope',
      'connections.run',
    ]);
    const [api_key = ''] = /dpm_\w+/.exec(created.out) ?? [];
    expect((await api.as(api_key)('GET', '/users/me')).body.permissions).toEqual(['connections.run']);
    const { out } = await cli.run(['keys', 'list', '--service-account', 'ci', '--json']);
    const [{ id, name }] = JSON.parse(out);
    expect(name).toBe('nightly');
    const revoke = ['keys', 'revoke', id, '--service-account', 'ci'];
    expect((await cli.run(revoke)).code).toBe(2);
    expect((await api.as(api_key)('GET', '/users/me')).status).toBe(200);
    expect((await cli.run([...revoke, '--yes'])).code).toBe(0);
    expect((await api.as(api_key)('GET', '/users/me')).status).toBe(401);
    expect((await cli.run(['service-accounts', 'delete', 'ci', '--yes'])).code).toBe(0);
  });
});

describe('audit', () => {
  test('lists entries, and verifies them with the exit code as the result', async () => {
    await api.call('POST', '/roles', { name: 'Auditors', permissions: ['audit.read'] });
    const { out } = await cli.run(['audit', 'list', '--action', 'roles.*', '--kind', 'change']);
    expect(out).toContain('Auditors');
    await sealAudit(service.deps);
    const verified = await cli.run(['audit', 'verify']);
    expect(verified.code).toBe(0);
    const [, anchor = ''] = /(\d+:[0-9a-f]{64})/.exec(verified.out) ?? [];
    expect((await cli.run(['audit', 'verify', '--anchor', anchor])).code).toBe(0);
    const other = anchor.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    const { code, out: found } = await cli.run(['audit', 'verify', '--anchor', other]);
    expect(code).toBe(1);
    expect(found).toContain('anchor_differs');
    expect((await cli.run(['audit', 'verify', '--anchor', 'nonsense'])).code).toBe(2);
  });
});

describe('completion', () => {
  test('proposes commands, flags and values', async () => {
    const words = async (...args: string[]) => (await cli.run(['__complete', ...args])).out.trim().split('\n');
    expect(await words('con')).toEqual(['contexts', 'connectors', 'connections']);
    expect(await words('runs', '')).toEqual(expect.arrayContaining(['list', 'show', 'stop', 'rerun']));
    expect(await words('logs', '--si')).toEqual(['--side']);
    expect(await words('logs', '--side', '')).toEqual(['source', 'destination']);
    expect(await words('status', '--con')).toEqual(['--context']);
  });

  test('proposes names of the account and states', async () => {
    const { status } = await api.call('POST', '/account_connectors', {
      name: 'Shop of Ada',
      connector_type: 'source',
      connector_name: 'sample',
      parameters: {},
    });
    expect(status).toBe(201);
    const words = async (...args: string[]) => (await cli.run(['__complete', ...args])).out.trim().split('\n');
    expect(await words('sources', 'show', 'Sh')).toEqual(['Shop of Ada']);
    expect(await words('sources', 'delete', 'Shop\\ of')).toEqual(['Shop of Ada']);
    expect(await words('runs', 'list', '--status', 'st')).toEqual(['stopping', 'stopped']);
    expect(await words('cases', '--status', 'o')).toEqual(['open']);
    // An unreachable service must not print an error into the command line.
    const gone = commandLine({ url: 'http://127.0.0.1:1', key });
    expect(await gone.run(['__complete', 'sources', 'show', ''])).toEqual({
      code: 0,
      out: '--json\n--output\n--jq\n',
      err: '',
    });
  });

  test('works in bash', async () => {
    const { out: script } = await cli.run(['completion', 'bash']);
    const main = `${import.meta.dir}/../../client/cli/main.ts`;
    const text = `data-pipelines() { '${process.execPath}' '${main}' "$@"; }
      ${script}
      COMP_WORDS=(data-pipelines connections re); COMP_CWORD=2; _data_pipelines; echo "\${COMPREPLY[@]}"
      COMP_WORDS=(data-pipelines sources show Sh); COMP_CWORD=3; _data_pipelines; echo "\${COMPREPLY[@]}"`;
    const env = { PATH: process.env.PATH, DATA_PIPELINES_URL: url, DATA_PIPELINES_KEY: key };
    const bash = Bun.spawn(['bash', '-c', text], { stdout: 'pipe', stderr: 'pipe', env });
    const [proposed, names] = (await new Response(bash.stdout).text()).trim().split('\n');
    expect(proposed!.split(' ').toSorted()).toEqual(['refresh-catalog', 'resume']);
    expect(names).toBe('Shop\\ of\\ Ada');
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

  test('shows a list in every format', async () => {
    const list = async (...args: string[]) => (await cli.run(['sources', 'list', ...args])).out.trim();
    const [source] = JSON.parse(await list('-o', 'json'));
    expect(source.name).toBe('Shop of Ada');
    expect(JSON.parse(await list('--json'))).toEqual([source]);
    expect(Bun.YAML.parse(await list('-o', 'yaml'))).toEqual([source]);
    expect(await list('-o', 'name')).toBe('Shop of Ada');
    const [head, row] = (await list('-o', 'csv')).split('\n');
    expect(head!.split(',')).toContain('connector_name');
    expect(row).toContain(',sample,');
    expect(await list()).not.toContain(source.id);
    expect(await list('-o', 'wide')).toContain(source.id);
    expect(await list('--jq', '.[] | .name, .streams_count')).toMatch(/^Shop of Ada\n\d+$/);
    for (const wrong of [
      ['--jq', '.['],
      ['--json', '-o', 'csv'],
      ['--jq', '.', '-o', 'csv'],
      ['--jq', '.[] | .name.x'],
    ])
      expect({ wrong, ...(await cli.run(['sources', 'list', ...wrong])) }).toMatchObject({ code: 2, out: '' });
  });

  test('lists fit 80 columns with names that can be read', async () => {
    const session = cli.terminal(['sources', 'list'], { columns: 80 });
    await session.sees('Shop of Ada');
    await session.ended();
    for (const line of session.screen().split('\n')) expect(Bun.stringWidth(line.trimEnd())).toBeLessThanOrEqual(80);
    expect(session.screen()).not.toContain('…');
  });

  test('every command has a version, a help text and examples that it accepts', async () => {
    expect((await cli.run(['--version'])).out.trim()).toMatch(/^\d+\.\d+\.\d+$/);
    const texts = leavesOf(commands.root as unknown as Routes);
    expect(texts.length).toBeGreaterThan(50);
    for (const { route, text } of texts) {
      const examples = text.split('EXAMPLES\n')[1]?.trim().split('\n') ?? [];
      expect({ route, examples: examples.length }).toMatchObject({ examples: expect.any(Number) });
      for (const example of examples) expect(`${example} `).toContain(`data-pipelines ${route} `);
      expect(examples).not.toEqual([]);
    }
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

interface Routes {
  getAllEntries?(): { name: { 'convert-camel-to-kebab': string }; target: Routes }[];
  fullDescription?: string;
}

/** The commands below a route, with their help texts. */
function leavesOf(target: Routes, route: string[] = []): { route: string; text: string }[] {
  if (!target.getAllEntries) return [{ route: route.join(' '), text: target.fullDescription ?? '' }];
  return target
    .getAllEntries()
    .flatMap(({ name, target: inner }) => leavesOf(inner, [...route, name['convert-camel-to-kebab']]));
}

test('deleting takes a whole name or an id', async () => {
  const [{ id, name }] = JSON.parse((await cli.run(['sources', 'list', '--json'])).out);
  for (const cut of ['', ' ', 'Shop', id.slice(0, 8)]) {
    const { code } = await cli.run(['sources', 'delete', cut, '--yes']);
    expect({ cut, code }).toEqual({ cut, code: cut.trim() === '' ? 2 : 4 });
  }
  expect((await cli.run(['sources', 'delete', 'Shop', '--yes'])).err).toContain('Pass the whole name: "Shop of Ada"');
  expect((await cli.run(['sources', 'delete', name.toLowerCase(), '--yes'])).code).toBe(0);
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
