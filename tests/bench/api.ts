/**
 * `bun tests/bench/api.ts [seconds]`: requests/s of the API against a bare Elysia app and against FastAPI, which both
 * send the same SQL to the same database, one after the other in each round. Needs Debian's postgresql-15 and wrk, and
 * the Python packages of FastAPI's peer: those of Debian, or in a virtual environment whose interpreter BENCH_PYTHON names.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { startCluster } from './cluster.ts';
import { median } from './report.ts';
import { startService } from './service.ts';
import { listen } from './statements.ts';

const SECONDS = Number(process.argv[2] ?? 5);
const ROUNDS = 3;
const LISTED = 1000;
const SECRET_KEY = 'a secret key that only this bench uses, 0123456789';
const PYTHON = process.env.BENCH_PYTHON ?? '/usr/bin/python3';
const PYTHON_PACKAGES = ['fastapi', 'uvicorn', 'uvloop', 'httptools', 'asyncpg'];

requirePython();

const scratch = mkdtempSync(join(tmpdir(), 'data-pipelines-bench-'));
const cluster = await startCluster();
cluster.psql('postgres', 'create database control');
const url = cluster.url('control');
const service = await startService({ DATABASE_URL: url, SECRET_KEY });
const peers: Bun.Subprocess[] = [];
try {
  const { id, source_id, destination_id } = await fill();
  const plan = join(scratch, 'plan.json');
  await Bun.write(plan, JSON.stringify({ url, ...(await statements({ id, source_id, destination_id })) }));
  const elysia = await start(['bun', join(import.meta.dir, 'bare-elysia.ts'), plan]);
  const fastapi = await start([PYTHON, join(import.meta.dir, 'fastapi_peer.py'), plan]);
  const create = JSON.stringify({ name: '%s', table_prefix: '%s', source_id, destination_id });
  const wrong = JSON.stringify({ name: '', source_id: 'x', destination_id });
  console.log(
    `requests/s, ${LISTED} connections in the account, median of ${ROUNDS} rounds of ${SECONDS} s, 16 clients`,
  );
  // The last two numbers of each are the goals: of Elysia and of FastAPI.
  for (const [name, path, body, status, ofElysia, ofFastapi] of [
    ['GET /connections/{id}', `/connections/${id}`, null, 200, 0.8, 4],
    [`GET /connections?limit=${LISTED}`, `/connections?limit=${LISTED}`, null, 200, 0.95, 13],
    ['POST /connections, 422', '/connections', wrong, 422, 0.75, 3],
    ['POST /connections', '/connections', create, 201, 0.8, 1.5],
  ] as const) {
    const rates: [number[], number[], number[]] = [[], [], []];
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [place, base] of [service.url, elysia, fastapi].entries()) {
        rates[place]!.push(await load(`${base}${path}`, { body, status }));
      }
    }
    const [ours, bare, python] = rates.map(median) as [number, number, number];
    console.log(`  ${name}: ${ours.toFixed(0)}; Elysia ${bare.toFixed(0)}, FastAPI ${python.toFixed(0)}`);
    verdict('Elysia', ours / bare, ofElysia);
    verdict('FastAPI', ours / python, ofFastapi);
  }
} finally {
  for (const peer of peers) peer.kill();
  await service.stop();
  await cluster.stop();
  rmSync(scratch, { recursive: true, force: true });
}

/** @throws Error that says how to install what is missing. */
function requirePython(): void {
  const missing = PYTHON_PACKAGES.filter((name) => !Bun.spawnSync([PYTHON, '-c', `import ${name}`]).success);
  if (missing.length === 0) return;
  throw new Error(`${PYTHON} has no ${missing.join(', ')}. Use a virtual environment and name its interpreter:
  python3 -m venv ~/fastapi-peer
  ~/fastapi-peer/bin/pip install ${PYTHON_PACKAGES.join(' ')}
  BENCH_PYTHON=~/fastapi-peer/bin/python bun tests/bench/api.ts`);
}

function verdict(peer: string, ratio: number, goal: number): void {
  console.log(`    ${ratio >= goal ? 'reached' : 'MISSED '} ${ratio.toFixed(2)} of ${peer}, goal ${goal}`);
}

/** Connections created over the API: one with streams to read, and many for the list. */
async function fill() {
  const end = (connector_type: string, name: string, connector_name: string, parameters: object) =>
    service.call<{ id: string }>('POST', '/account_connectors', { name, connector_type, connector_name, parameters });
  const { id: source_id } = await end('source', 'demo', 'demo', {});
  const { id: destination_id } = await end('destination', 'files', 'file', { path: 'out', format: 'jsonl' });
  let id = '';
  for (let n = 0; n < LISTED; n += 1) {
    // No two connections may write the same tables.
    const body = { name: `pipeline ${n}`, table_prefix: `p${n}_`, source_id, destination_id };
    id = (await service.call<{ id: string }>('POST', '/connections', body)).id;
  }
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await sql`analyze`;
  await sql.end();
  return { id, source_id, destination_id };
}

async function statements(ids: { id: string; source_id: string; destination_id: string }) {
  const { id, source_id, destination_id } = ids;
  const env = { DATA_DIR: service.data_dir, SECRET_KEY, BOOTSTRAP_API_KEY: service.api_key, LOG_LEVEL: 'warn' };
  const heard = await listen(env, url);
  const one = await heard.statementsOf('GET', `/connections/${id}`);
  const list = await heard.statementsOf('GET', `/connections?limit=${LISTED}`);
  const create = await heard.statementsOf('POST', '/connections', (name) => {
    return { name, table_prefix: name, source_id, destination_id };
  });
  await heard.close();
  return { one, list, create };
}

/** Starts a peer and returns its address once it has printed its port and responds. */
async function start(command: string[]): Promise<string> {
  const env = { ...process.env, NODE_ENV: 'production' };
  const peer = Bun.spawn(command, { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit', env });
  peers.push(peer);
  const { value } = await peer.stdout.getReader().read();
  const base = `http://127.0.0.1:${new TextDecoder().decode(value).trim()}`;
  const deadline = Date.now() + 30_000;
  while (
    !(await fetch(`${base}/nothing`).then(
      () => true,
      () => false,
    ))
  ) {
    if (Date.now() > deadline) throw new Error(`${command.join(' ')} does not answer`);
    await Bun.sleep(50);
  }
  return base;
}

/** Requests/s; each body has another name for each %s. */
async function load(target: string, { body, status }: { body: string | null; status: number }): Promise<number> {
  const headers = { authorization: `Bearer ${service.api_key}`, 'content-type': 'application/json' };
  const prefix = Bun.randomUUIDv7();
  const probe = await fetch(target, { method: body ? 'POST' : 'GET', headers, body: body?.replaceAll('%s', prefix) });
  if (probe.status !== status) throw new Error(`${target}: ${probe.status} ${await probe.text()}`);
  await probe.arrayBuffer();
  const script = join(scratch, 'requests.lua');
  const next = `string.format([[${body}]], "${prefix}" .. n, "${prefix}" .. n)`;
  await Bun.write(
    script,
    body ? `local n = 0\nrequest = function()\n n = n + 1\n return wrk.format("POST", nil, nil, ${next})\nend\n` : '',
  );
  const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const text = Bun.spawnSync(['wrk', '-t1', '-c16', `-d${SECONDS}s`, '-s', script, ...given, target]).stdout.toString();
  const refused = Number(/Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? 0);
  if (refused > 0 !== status >= 400) throw new Error(`${target} answers otherwise: ${text}`);
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1]);
}
