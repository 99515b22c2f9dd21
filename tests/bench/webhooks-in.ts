/**
 * Sends signed events to a source at a fixed rate while the process of the API is killed with SIGKILL, and compares what was
 * acknowledged with what is stored:
 *
 *   bun tests/bench/webhooks-in.ts [--rate 1000] [--seconds 30] [--kills 5]
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { Webhook } from 'standardwebhooks';
import { createPlainDatabase } from '../support/database.ts';
import { freePort } from '../support/free-port.ts';
import { watchOver } from '../support/watchdog.ts';
import { scratchFolder } from './scratch.ts';

const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '30' },
    kills: { type: 'string', default: '5' },
  },
});
const [rate, seconds, kills] = [Number(values.rate), Number(values.seconds), Number(values.kills)];
const KEY = 'bench-administrator-key-0123456789abcdef';
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const database = await createPlainDatabase();
const sql = postgres(database.url, { max: 1, onnotice: () => {} });
const data_dir = scratchFolder();
const port = await freePort();
const url = `http://127.0.0.1:${port}`;

function startApi() {
  const main = join(import.meta.dir, '../../server/main.ts');
  const env = { ...process.env, PORT: String(port), DATA_DIR: data_dir, BOOTSTRAP_API_KEY: KEY, LOG_LEVEL: 'error' };
  const child = Bun.spawn(['bun', main, 'api'], {
    env: {
      ...env,
      DATABASE_URL: database.url,
      PUBLIC_URL: url,
      SECRET_KEY: 'a secret key of the bench, 0123456789abcdef',
    },
    stdout: 'ignore',
    stderr: 'inherit',
  });
  watchOver(child, '', 'TERM');
  return child;
}

async function ready(): Promise<void> {
  while (
    !(await fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ))
  )
    await Bun.sleep(20);
}

async function call(method: string, path: string, body?: object) {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
  const answer = await fetch(`${url}${path}`, { method, headers, body: body && JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as { id: string; address: string };
}

let api = startApi();
await ready();
const { id } = await call('POST', '/account_connectors', {
  name: 'bench',
  connector_type: 'source',
  connector_name: 'webhook',
  parameters: { signature: 'standard_webhooks', secret: SECRET, max_events: 10_000_000 },
});
const { address } = await call('GET', `/account_connectors/${id}/webhook`);

const signer = new Webhook(SECRET);
const acknowledged = new Set<string>();
const latencies: number[] = [];
let repeated = 0;
let refused = 0;

async function deliver(name: string): Promise<void> {
  const body = JSON.stringify({ type: 'order.paid', data: { name, text: 'x'.repeat(500) } });
  const start = performance.now();
  for (let tries = 0; ; tries += 1) {
    const at = new Date();
    const headers = {
      'webhook-id': name,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': signer.sign(name, at, body),
    };
    try {
      const answer = await fetch(address, { method: 'POST', headers, body, signal: AbortSignal.timeout(10_000) });
      const { status } = (await answer.json()) as { status?: string };
      if (answer.ok) {
        acknowledged.add(name);
        if (status === 'repeated') repeated += 1;
        if (tries === 0) latencies.push(performance.now() - start);
        return;
      }
      refused += 1;
    } catch {
      // The process was killed: the sender does not know whether the event was stored.
    }
    await Bun.sleep(100);
  }
}

const total = rate * seconds;
const killTimes = Array.from({ length: kills }, (_, at) => (seconds * 1000 * (at + 1)) / (kills + 1));
const start = performance.now();
const killing = (async () => {
  for (const time of killTimes) {
    await Bun.sleep(Math.max(0, time - (performance.now() - start)));
    api.kill('SIGKILL');
    await api.exited;
    api = startApi();
    await ready();
  }
})();
/** Connections of a sender. After a kill, those events that are due catch up. */
const CONNECTIONS = 128;
let next = 0;
const sendDue = async () => {
  while (next < total) {
    const wait = (next / rate) * 1000 - (performance.now() - start);
    if (wait > 0) await Bun.sleep(wait);
    else await deliver(`evt_${next++}`);
  }
};
await Promise.all(Array.from({ length: CONNECTIONS }, sendDue));
const took = (performance.now() - start) / 1000;
await killing;
const stored = new Set(
  (await sql<{ event_id: string }[]>`select event_id from webhook_events`).map((row) => row.event_id),
);
const [order] = await sql`select count(*) filter (where position <= before)::int as wrong from (
  select position, lag(position) over (order by position) as before from webhook_events) as pairs`;
const lost = [...acknowledged].filter((name) => !stored.has(name)).length;
latencies.sort((a, b) => a - b);
const percentile = (share: number) => Math.round(latencies[Math.floor(latencies.length * share)] ?? 0);
console.log(
  `${acknowledged.size} acknowledged in ${took.toFixed(1)} s (${Math.round(acknowledged.size / took)}/s at ${rate}/s asked), ` +
    `${kills} SIGKILLs, ${lost} lost, ${stored.size - acknowledged.size} stored beyond them, ${repeated} repeated, ` +
    `${refused} refused, ${order?.wrong} out of order, p50 ${percentile(0.5)} ms, p99 ${percentile(0.99)} ms`,
);
api.kill('SIGTERM');
await api.exited;
await sql.end();
await database.drop();
process.exit(lost === 0 && stored.size === total ? 0 : 1);
