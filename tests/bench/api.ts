/**
 * `bun tests/bench/api.ts [seconds]`: requests/s of the API against a bare Elysia app that sends the same SQL, on one
 * database, alternating. Needs Debian's postgresql-15 and wrk.
 */
import { join } from 'node:path';
import postgres from 'postgres';
import { startCluster } from './cluster.ts';
import { median } from './report.ts';
import { startService } from './service.ts';

const SECONDS = Number(process.argv[2] ?? 5);
const ROUNDS = 3;
const LISTED = 1000;

const cluster = await startCluster();
cluster.psql('postgres', 'create database control');
const url = cluster.url('control');
const service = await startService({ DATABASE_URL: url });
const sql = postgres(url, { max: 1, onnotice: () => {} });
let bare: Bun.Subprocess<'ignore', 'pipe', 'inherit'> | null = null;
try {
  const id = await fill();
  const [facts] = await sql`select k.hash, u.account_id from api_keys k join users u on u.id = k.user_id limit 1`;
  const peer = await startBare([url, facts?.hash, id, facts?.account_id]);
  console.log(`requests/s with ${LISTED} connections in the account, median of ${ROUNDS} rounds of ${SECONDS} s, 16 clients`);
  for (const [name, path, goal] of [
    ['GET /connections/{id}', `/connections/${id}`, 0.5],
    [`GET /connections?limit=${LISTED}`, `/connections?limit=${LISTED}`, 0.5],
  ] as const) {
    const ours: number[] = [];
    const theirs: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      ours.push(load(`${service.url}${path}`));
      theirs.push(load(`${peer}${path}`));
    }
    const ratio = median(ours) / median(theirs);
    const figures = `${median(ours).toFixed(0)} against ${median(theirs).toFixed(0)} bare`;
    console.log(`  ${ratio >= goal ? 'reached' : 'MISSED '} ${name}: ${figures}, ratio ${ratio.toFixed(2)}, goal ${goal}`);
  }
} finally {
  bare?.kill();
  await sql.end();
  await service.stop();
  await cluster.stop();
}

/** Connections made over the API: one with streams to read, and many for the list. */
async function fill(): Promise<string> {
  const end = (connector_type: string, name: string, connector_name: string, parameters: object) =>
    service.call<{ id: string }>('POST', '/account_connectors', { name, connector_type, connector_name, parameters });
  const source = await end('source', 'demo', 'demo', {});
  const destination = await end('destination', 'files', 'file', { path: 'out', format: 'jsonl' });
  let last = '';
  for (let n = 0; n < LISTED; n += 1) {
    const body = { name: `pipeline ${n}`, source_id: source.id, destination_id: destination.id };
    last = (await service.call<{ id: string }>('POST', '/connections', body)).id;
  }
  await sql`analyze`;
  return last;
}

async function startBare(values: unknown[]): Promise<string> {
  bare = Bun.spawn(['bun', join(import.meta.dir, 'bare-elysia.ts'), ...values.map(String)], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
    env: { ...process.env, NODE_ENV: 'production' },
  });
  const { value } = await bare.stdout.getReader().read();
  return `http://127.0.0.1:${new TextDecoder().decode(value).trim()}`;
}

function load(target: string): number {
  const command = ['wrk', '-t1', '-c16', `-d${SECONDS}s`, '-H', `authorization: Bearer ${service.api_key}`, target];
  const text = Bun.spawnSync(command).stdout.toString();
  if (/Non-2xx/.test(text)) throw new Error(`${target} answers with errors`);
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1]);
}
