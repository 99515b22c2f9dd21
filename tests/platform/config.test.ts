import { afterAll, describe, expect, test } from 'bun:test';
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError, environmentOf, readConfig } from '../../server/platform/config.ts';
import { readSettings } from '../../server/platform/settings-by-reference.ts';
import { startHttpServer } from '../support/http-server.ts';
import { temporaryFolder } from '../support/postgres.ts';

const folder = temporaryFolder();
const KEY = 'k3y-for-tests-0123456789-abcdefgh';

test.each([
  ['PORT', 'eighty'],
  ['PORT', '65536'],
  ['PORT', '-1'],
  ['PORT', '0x50'],
  ['HOST', 'not a host'],
  ['DATABASE_URL', 'mysql://localhost/x'],
  ['DATABASE_URL', 'localhost:5432'],
  ['OBJECT_STORE_URL', 'https://example.com'],
  ['SECRET_KEY', 'short'],
  ['SECRET_KEY', '0'.repeat(64)],
  ['SECRET_KEY', `${'A'.repeat(43)}=`],
  ['BOOTSTRAP_EMAIL', 'nobody'],
  ['BOOTSTRAP_API_KEY', 'thirty-one-characters-long-12345'.slice(0, 31)],
  ['BOOTSTRAP_API_KEY', 'a key with spaces in it that is long enough'],
  ['DEMO', 'maybe'],
  ['WORKER_CONCURRENCY', '0'],
  ['LOG_LEVEL', 'loud'],
])('%s=%s stops the start with one line that names the variable and not its value', (name, value) => {
  let message = '';
  try {
    readConfig({ DATA_DIR: folder, SECRET_KEY: KEY, [name]: value });
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    message = (error as Error).message;
  }
  expect(message).toStartWith(`${name} must `);
  expect(message).not.toInclude('\n');
  expect(message).not.toInclude(value);
});

test('without variables the defaults apply, and an empty variable counts as absent', () => {
  const dataDir = join(folder, 'defaults');
  const { SECRET_KEY, ...rest } = readConfig({
    DATA_DIR: dataDir,
    PORT: '',
    DATABASE_URL: '',
    DEMO: '',
    SECRET_KEY: '',
  });
  expect(rest).toMatchObject({
    HOST: '127.0.0.1',
    PORT: 8080,
    DATABASE_URL: null,
    DATA_DIR: dataDir,
    OBJECT_STORE_URL: `file://${dataDir}/objects`,
    BOOTSTRAP_EMAIL: 'admin@localhost',
    BOOTSTRAP_API_KEY: null,
    DEMO: true,
    WORKER_CONCURRENCY: 4,
    AUDIT_LOG_LINES: false,
    LOG_LEVEL: 'info',
  });
  expect(SECRET_KEY.length).toBeGreaterThanOrEqual(43);
});

test.each(['0', 'false', 'OFF', 'no'])('DEMO=%s disables the demo', (DEMO) => {
  expect(readConfig({ DATA_DIR: folder, SECRET_KEY: KEY, DEMO }).DEMO).toBeFalse();
});

test('PUBLIC_URL and BASE_PATH complete each other', () => {
  const addressOf = (PUBLIC_URL: string, BASE_PATH: string) => {
    const config = readConfig({ DATA_DIR: folder, SECRET_KEY: KEY, PUBLIC_URL, BASE_PATH });
    return [config.PUBLIC_URL, config.BASE_PATH];
  };
  const below = ['https://example.org/tools/pipelines', '/tools/pipelines'];
  expect(addressOf('https://example.org/', '')).toEqual(['https://example.org', '']);
  expect(addressOf('https://example.org', '/')).toEqual(['https://example.org', '']);
  expect(addressOf('https://example.org/tools/pipelines/', '')).toEqual(below);
  expect(addressOf('https://example.org', '/tools/pipelines/')).toEqual(below);
  expect(addressOf(below[0]!, below[1]!)).toEqual(below);
  expect(addressOf('', '/p')).toEqual(['http://127.0.0.1:8080/p', '/p']);
  expect(readConfig({ DATA_DIR: folder, SECRET_KEY: KEY, HOST: '::' }).PUBLIC_URL).toBe('http://[::]:8080');
  expect(() => addressOf(below[0]!, '/pipelines')).toThrow('BASE_PATH must be the path of PUBLIC_URL');
  expect(() => addressOf('https://example.org/a%20b', '')).toThrow('The path of PUBLIC_URL must be a path such as');
  for (const path of ['pipelines', '//pipelines', '/a/../b', '/a"b', '/a b', '/a?b'])
    expect(() => addressOf('https://example.org', path), path).toThrow('BASE_PATH must be a path such as');
});

test('the secret key is created once, readable by its owner only, and kept', () => {
  const dataDir = join(folder, 'kept');
  const first = readConfig({ DATA_DIR: dataDir }).SECRET_KEY;
  expect(statSync(join(dataDir, 'secret.key')).mode & 0o777).toBe(0o600);
  expect(readConfig({ DATA_DIR: dataDir }).SECRET_KEY).toBe(first);
  expect(readConfig({ DATA_DIR: join(folder, 'other') }).SECRET_KEY).not.toBe(first);
});

test('processes that start at once agree on one secret key', async () => {
  const dataDir = join(folder, 'race');
  const script = `const { readConfig } = await import(${JSON.stringify(join(import.meta.dir, '../../server/platform/config.ts'))});
    console.log(readConfig({ DATA_DIR: ${JSON.stringify(dataDir)} }).SECRET_KEY);`;
  const children = Array.from({ length: 4 }, () => Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe' }));
  const keys = await Promise.all(children.map((child) => new Response(child.stdout).text()));
  expect(new Set(keys)).toEqual(new Set([readFileSync(join(dataDir, 'secret.key'), 'utf8')]));
});

test('a damaged key file is rejected, not replaced', () => {
  const dataDir = join(folder, 'damaged');
  mkdirSync(dataDir);
  writeFileSync(join(dataDir, 'secret.key'), 'half');
  expect(() => readConfig({ DATA_DIR: dataDir })).toThrow(
    /^SECRET_KEY in .*secret\.key must have at least 32 characters$/,
  );
  expect(readFileSync(join(dataDir, 'secret.key'), 'utf8')).toBe('half');
});

test('a DATA_DIR that cannot be created is named', () => {
  const file = join(folder, 'a-file');
  writeFileSync(file, '');
  chmodSync(file, 0o600);
  expect(() => readConfig({ DATA_DIR: join(file, 'below') })).toThrow(/^DATA_DIR cannot be used: /);
});

test('a child process reads the same settings from its environment', () => {
  const config = readConfig({ DATA_DIR: folder, SECRET_KEY: KEY, PORT: '0', DEMO: '0', WORKER_CONCURRENCY: '7' });
  const url = 'postgres://somebody@127.0.0.1:1/pipelines';
  expect(readConfig(environmentOf(config, url))).toEqual({ ...config, DATABASE_URL: url, DATABASE_OWNER_URL: null });
});

describe('secrets of settings by reference', () => {
  const vault = startHttpServer();
  afterAll(() => vault.close());
  vault.on('/v1/kv/data/service', ({ headers }) =>
    headers['x-vault-token'] === 'of-the-agent'
      ? Response.json({ data: { data: { smtp: 'smtps://me:secret@mail.example.org' } } })
      : Response.json({ errors: ['permission denied'] }, { status: 403 }),
  );
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return `file:${join(folder, name)}`;
  };
  const base = {
    DATA_DIR: folder,
    SECRET_KEY: KEY,
    VAULT_ADDR: vault.url,
    VAULT_TOKEN: write('token', 'of-the-agent\n'),
  };

  test('are read from variables, files and Vault', async () => {
    const config = await readSettings({
      ...base,
      SECRET_KEY: write('key', `${KEY}\n`),
      DATABASE_URL: 'env:OF_THE_DATABASE',
      OF_THE_DATABASE: 'postgres://me:secret@db.example.org/pipelines',
      SMTP_URL: 'vault:kv/data/service#smtp',
      OBJECT_STORE_URL: write('store', 's3://key:secret@bucket/'),
    });
    expect(config).toMatchObject({
      SECRET_KEY: KEY,
      DATABASE_URL: 'postgres://me:secret@db.example.org/pipelines',
      SMTP_URL: 'smtps://me:secret@mail.example.org',
      OBJECT_STORE_URL: 's3://key:secret@bucket/',
    });
    expect(readConfig(environmentOf(config, config.DATABASE_URL!))).toMatchObject({ SMTP_URL: config.SMTP_URL });
  });

  test('leave addresses as they are', async () => {
    const OBJECT_STORE_URL = `file://${folder}/objects`;
    expect(await readSettings({ ...base, OBJECT_STORE_URL })).toMatchObject({ OBJECT_STORE_URL });
  });

  test.each([
    ['DATABASE_URL', 'env:NOT_SET', 'names a secret that cannot be read: env:NOT_SET holds nothing on this machine'],
    ['SECRET_KEY', `file:${folder}/none`, 'names a secret that cannot be read: file:'],
    ['OBJECT_STORE_URL', `file:${folder}`, 'names a secret that cannot be read: file:'],
    ['SMTP_URL', 'vault:kv/data/service', 'must be env:NAME, file:/path, vault:path#field, or the value itself'],
    ['SMTP_URL', 'vault:kv/data/service#none', 'names a secret that cannot be read: vault:kv/data/service has no text'],
    ['SMTP_URL', write('plain', 'http://mail.example.org'), 'must be an smtp:// or smtps:// URL'],
  ])('%s=%s stops the start with one line that names the variable', async (name, value, message) => {
    const reading = readSettings({ ...base, [name]: value });
    await expect(reading).rejects.toBeInstanceOf(ConfigError);
    await expect(reading).rejects.toThrow(`${name} ${message}`);
    await expect(reading).rejects.not.toThrow('example.org');
  });
});
