/**
 * `bun tests/bench/api.ts [seconds]`: requests/s of the API against a bare Elysia app and against FastAPI, which both
 * send the same SQL to the same database, one after the other in each round, and the processor time of a request. Needs
 * Debian's postgresql-15 and wrk, and the Python packages of FastAPI's peer: those of Debian, or in a virtual environment
 * whose interpreter BENCH_PYTHON names.
 */
import { join } from 'node:path';
import postgres from 'postgres';
import { startCluster } from './cluster.ts';
import { copyConnection } from './many-connections.ts';
import { secondsOf } from './processor-seconds.ts';
import { median } from './report.ts';
import { scratchFolder } from './scratch.ts';
import { startService } from './service.ts';
import { listen } from './statements.ts';

const SECONDS = Number(process.argv[2] ?? 3);
const ROUNDS = 5;
const LISTED = 1000;
const SECRET_KEY = 'a secret key that only this bench uses, 0123456789';
const PYTHON = process.env.BENCH_PYTHON ?? '/usr/bin/python3';
const PYTHON_PACKAGES = ['fastapi', 'uvicorn', 'uvloop', 'httptools', 'asyncpg'];

requirePython();
console.log(peerVersions());

const scratch = scratchFolder();
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
    `requests/s (processor time of a request: process + PostgreSQL), ${LISTED} connections in the account, median of ` +
      `${ROUNDS} rounds of ${SECONDS} s (lists ${3 * SECONDS} s), 16 clients`,
  );
  // The last two numbers of each are the goals: of Elysia and of FastAPI. FastAPI takes two seconds for 16 lists: in rounds
  // as short as the others, most of its work would be for requests that are not counted.
  for (const [name, path, body, status, seconds, ofElysia, ofFastapi] of [
    ['GET /connections/{id}', `/connections/${id}`, null, 200, SECONDS, 0.8, 4],
    [`GET /connections?limit=${LISTED}`, `/connections?limit=${LISTED}`, null, 200, 3 * SECONDS, 0.95, 13],
    ['POST /connections, 422', '/connections', wrong, 422, SECONDS, 0.75, 3],
    ['POST /connections', '/connections', create, 201, SECONDS, 0.8, 1.5],
  ] as const) {
    const rounds: Loaded[][] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const of: Loaded[] = [];
      for (const server of [{ base: service.url, pid: service.pid }, elysia, fastapi]) {
        of.push(await load(server, { path, body, status, seconds }));
      }
      rounds.push(of);
    }
    const shown = (place: number) => {
      const [rate, own, database] = (['rate', 'own', 'database'] as const).map((key) =>
        median(rounds.map((of) => of[place]![key])),
      );
      return `${rate!.toFixed(0)} (${own!.toFixed(2)} + ${database!.toFixed(2)} ms)`;
    };
    console.log(`  ${name}: ${shown(0)}; Elysia ${shown(1)}, FastAPI ${shown(2)}`);
    // Within a round: what else the machine does is the same for all.
    const ratio = (peer: number) => median(rounds.map((of) => of[0]!.rate / of[peer]!.rate));
    verdict('Elysia', ratio(1), ofElysia);
    verdict('FastAPI', ratio(2), ofFastapi);
  }
} finally {
  for (const peer of peers) peer.kill();
  await service.stop();
  await cluster.stop();
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

/** FastAPI 0.92 with pydantic 1.10 is a quarter as fast as later ones. */
function peerVersions(): string {
  const script = 'import fastapi, pydantic, sys; print(fastapi.__version__, pydantic.VERSION, sys.version.split()[0])';
  const [fastapi, pydantic, python] = Bun.spawnSync([PYTHON, '-c', script]).stdout.toString().trim().split(' ');
  return `FastAPI ${fastapi} with pydantic ${pydantic} on Python ${python}, Elysia on Bun ${Bun.version}`;
}

function verdict(peer: string, ratio: number, goal: number): void {
  console.log(`    ${ratio >= goal ? 'reached' : 'MISSED '} ${ratio.toFixed(2)} of ${peer}, goal ${goal}`);
}

/** One connection with streams to read, and many for the list. */
async function fill() {
  const end = (connector_type: string, name: string, connector_name: string, parameters: object) =>
    service.call<{ id: string }>('POST', '/account_connectors', { name, connector_type, connector_name, parameters });
  const { id: source_id } = await end('source', 'demo', 'demo', {});
  const { id: destination_id } = await end('destination', 'files', 'file', { path: 'out', format: 'jsonl' });
  const body = { name: 'pipeline', source_id, destination_id };
  const { id } = await service.call<{ id: string }>('POST', '/connections', body);
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await copyConnection(sql, id, LISTED - 1);
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

interface Server {
  base: string;
  pid: number;
}

/** Starts a peer and returns its address once it has printed its port and responds. */
async function start(command: string[]): Promise<Server> {
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
  return { base, pid: peer.pid };
}

/** Requests/s, and milliseconds of processor time of a request: of the server's process, and of PostgreSQL. */
interface Loaded {
  rate: number;
  own: number;
  database: number;
}

/** Each body has another name for each %s. */
async function load(
  { base, pid }: Server,
  { path, body, status, seconds }: { path: string; body: string | null; status: number; seconds: number },
): Promise<Loaded> {
  const target = `${base}${path}`;
  const headers = { authorization: `Bearer ${service.api_key}`, 'content-type': 'application/json' };
  const prefix = Bun.randomUUIDv7();
  const probe = await fetch(target, {
    method: body ? 'POST' : 'GET',
    // uvicorn closes an idle connection after some seconds: the next request would be reset.
    headers: { ...headers, connection: 'close' },
    body: body?.replaceAll('%s', prefix),
  });
  if (probe.status !== status) throw new Error(`${target}: ${probe.status} ${await probe.text()}`);
  await probe.arrayBuffer();
  const script = join(scratch, 'requests.lua');
  const next = `string.format([[${body}]], "${prefix}" .. n, "${prefix}" .. n)`;
  await Bun.write(
    script,
    body ? `local n = 0\nrequest = function()\n n = n + 1\n return wrk.format("POST", nil, nil, ${next})\nend\n` : '',
  );
  const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const before = { own: secondsOf(pid), database: cluster.seconds() };
  const text = Bun.spawnSync(['wrk', '-t1', '-c16', `-d${seconds}s`, '-s', script, ...given, target]).stdout.toString();
  const refused = Number(/Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? 0);
  if (refused > 0 !== status >= 400) throw new Error(`${target} answers otherwise: ${text}`);
  const requests = Number(/(\d+) requests in/.exec(text)?.[1]);
  return {
    rate: Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1]),
    own: ((secondsOf(pid) - before.own) / requests) * 1000,
    database: ((cluster.seconds() - before.database) / requests) * 1000,
  };
}
