import { afterAll, expect, test } from 'bun:test';
import { rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { startEmbeddedPostgres } from '../../db/embedded.ts';
import { openDatabase } from '../../db/index.ts';
import { sql } from 'drizzle-orm';
import { createPlainDatabase } from '../support/database.ts';
import { freePort } from '../support/free-port.ts';
import { temporaryFolder } from '../support/postgres.ts';
import { isAlive } from '../support/processes.ts';

const folder = temporaryFolder();
const dataDir = join(folder, 'data');
let home: string | null = null;
const started: Bun.Subprocess[] = [];
afterAll(async () => {
  for (const child of started) child.kill('SIGKILL');
  if (home) rmSync(home, { recursive: true, force: true });
});

/** Starts the service as users do, and waits until it prints its address. */
async function startService(settings: Record<string, string> = {}) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../../server/main.ts'), 'all'], {
    env: { PATH: process.env.PATH, DATA_DIR: dataDir, PORT: '0', DEMO: '0', LOG_LEVEL: 'silent', ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  started.push(child);
  const reader = child.stdout.getReader();
  let said = '';
  while (!said.includes('API key')) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The service ended: ${said}`);
    said += new TextDecoder().decode(value);
  }
  reader.releaseLock();
  const address = /http:\/\/\S+/.exec(said)?.[0] ?? '';
  return { child, said, address };
}

/** The process of the database server; shares it with the running service for a moment. */
async function serverProcess(): Promise<number> {
  const server = await startEmbeddedPostgres({ dataDir });
  const database = openDatabase(server.url('pipelines'), { max: 1 });
  const [row] = await database.db.execute<{ data: string; pid: number }>(
    sql`select current_setting('data_directory') as data,
      split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int as pid`,
  );
  await database.close();
  await server.stop();
  home = dirname(row!.data);
  return row!.pid;
}

test('the first start tells the API key, the next ones do not; a signal ends everything with exit code 0', async () => {
  const first = await startService();
  expect(first.said).toMatch(/shown only now: dpm_\w+_\w+/);
  expect((await fetch(`${first.address}/readyz`)).status).toBe(200);
  const running = await serverProcess();
  expect(isAlive(running)).toBeTrue();
  first.child.kill('SIGINT');
  expect(await first.child.exited).toBe(0);
  expect(isAlive(running)).toBeFalse();

  const second = await startService();
  expect(second.said).not.toInclude('dpm_');
  second.child.kill('SIGTERM');
  expect(await second.child.exited).toBe(0);
});

test('a Ctrl-C that arrives several times, as under npx, still stops the database', async () => {
  const { child } = await startService();
  const running = await serverProcess();
  expect(isAlive(running)).toBeTrue();
  // A second SIGINT would be one with the first as long as that is pending.
  child.kill('SIGINT');
  child.kill('SIGTERM');
  expect(await child.exited).toBe(0);
  expect(isAlive(running)).toBeFalse();
});

test.each([
  [['all'], { PORT: 'x' }, 'PORT must be a whole number from 0 to 65535'],
  [['worker'], {}, 'DATABASE_URL must be set for "worker"'],
  [['api'], {}, 'DATABASE_URL must be set for "api"'],
  [['everything'], {}, 'Unknown mode "everything"'],
  [['api', '--no-wait'], { DATABASE_URL: 'postgres://somebody@127.0.0.1:1/none' }, 'DATABASE_URL: connection refused'],
])('main.ts %j with %j ends with one line that says why', async (args, env, line) => {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../../server/main.ts'), ...args], {
    env: { PATH: process.env.PATH, DATA_DIR: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  expect(await child.exited).toBe(1);
  expect(out).toBe('');
  expect(err).toStartWith(line);
  expect(err.trim().split('\n')).toHaveLength(1);
});

test('a second checkout takes another port when the usual one is taken; a configured port is kept', async () => {
  const taken = holdPort(8080);
  try {
    const second = await startService({ PORT: '' });
    expect(second.said).toInclude('Port 8080 is in use');
    expect(second.address).not.toEndWith(':8080');
    expect((await fetch(`${second.address}/readyz`)).status).toBe(200);
    second.child.kill('SIGTERM');
    expect(await second.child.exited).toBe(0);
  } finally {
    await taken?.stop(true);
  }
  const own = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('taken') });
  try {
    await expect(startService({ PORT: String(own.port) })).rejects.toThrow('The service ended');
  } finally {
    await own.stop(true);
  }
});

/** Null: another process holds the port. */
function holdPort(port: number) {
  try {
    return Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response('taken') });
  } catch {
    return null;
  }
}

test('a database that is away at the start is waited for', async () => {
  const control = await createPlainDatabase();
  const to = new URL(control.url);
  const away = new URL(control.url);
  away.hostname = '127.0.0.1';
  away.port = String(await freePort());
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../../server/main.ts'), 'api'], {
    env: { PATH: process.env.PATH, DATA_DIR: join(folder, 'patient'), DATABASE_URL: away.href, PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { value: complaint } = await child.stderr.getReader().read();
  expect(new TextDecoder().decode(complaint)).toMatch(
    /^DATABASE_URL: connection refused.* Waiting up to 60 s for it\n/,
  );
  const database = createServer((client) => {
    const upstream = connect(Number(to.port), to.hostname);
    client.pipe(upstream).pipe(client);
    for (const side of [client, upstream]) side.on('error', () => side.destroy());
  });
  database.listen(Number(away.port), '127.0.0.1');
  const { value: greeting } = await child.stdout.getReader().read();
  expect(new TextDecoder().decode(greeting)).toStartWith('Data pipelines at http');
  child.kill('SIGTERM');
  expect(await child.exited).toBe(0);
  database.close();
  await control.drop();
});
