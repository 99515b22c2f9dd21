/**
 * `bun tests/bench/api-size.ts [share] [connections]`: duration of each list and get in an account with 10,000
 * connections, 1M runs and 1M events, against an account of that share of the size (default 0.01), by item where there is
 * no limit; and the time to the first byte of streams. With `connections`, both accounts have that many, so that only
 * runs and events differ. In this process, one request at a time. Needs Debian's postgresql-15.
 */
import { join } from 'node:path';
import postgres from 'postgres';
import { migrateDatabase } from '../../db/migrate.ts';
import { closeDays } from '../../server/billing/close-days.ts';
import { sumPeriods } from '../../server/billing/sum-periods.ts';
import { createApp } from '../../server/http/app.ts';
import { bootstrap } from '../../server/process/bootstrap.ts';
import { readConfig } from '../../server/platform/config.ts';
import { closeDeps, createDeps } from '../../server/deps.ts';
import { readContract } from '../contract/document.ts';
import { readsOf } from '../contract/reads.ts';
import { makeWorld } from '../contract/world.ts';
import { testApi } from '../support/api.ts';
import { fillAccount, type Size } from '../support/large-account.ts';
import { startCluster } from './cluster.ts';
import { untilQuiet } from './quiet.ts';
import { median, verdict } from './report.ts';
import { scratchFolder } from './scratch.ts';

const SHARE = Number(process.argv[2] ?? 0.01);
/** 0: by share. */
const CONNECTIONS = Number(process.argv[3] ?? 0);
const FULL: Size = { connections: 10_000, runs: 1_000_000, events: 1_000_000 };
const PAGE = 50;
const ROUNDS = 25;
/** Of lists without a limit, which take seconds. */
const FEW_ROUNDS = 5;
const MANY = ['/connection_summaries', '/audit_log/export'];
const STREAMED = ['/audit_log/export'];
const GOAL = 1.5;
const KEY = 'bench-administrator-key-0123456789abcdef';

interface Answer {
  ms: number;
  first_ms: number;
  items: number;
}

const scratch = scratchFolder();
const cluster = await startCluster();
const contract = readContract();
const scaled = (share: number): Size => ({
  connections: CONNECTIONS || FULL.connections * share,
  runs: FULL.runs * share,
  events: FULL.events * share,
});
try {
  const small = await openAccount('small', scaled(SHARE));
  const large = await openAccount('large', scaled(1));
  console.log(`ms a request, pages of ${PAGE}: at ${SHARE * 100} %, in full; medians of ${ROUNDS}`);
  for (const [place, { name, template }] of small.reads.entries()) {
    const taken: [Answer[], Answer[]] = [[], []];
    await untilQuiet();
    for (let round = -3; round < (MANY.includes(template) ? FEW_ROUNDS : ROUNDS); round += 1) {
      for (const [side, account] of [small, large].entries()) {
        const answer = await account.time(account.reads[place]!.path);
        if (round >= 0) taken[side]!.push(answer);
      }
    }
    const [before, after] = taken.map((all) => median(all.map(({ ms }) => ms))) as [number, number];
    const [few, most] = taken.map((all) => all[0]!.items) as [number, number];
    const isWhole = MANY.includes(template);
    const ratio = after / before / (isWhole ? most / few : 1);
    const each = isWhole ? ` an item: ${few} and ${most} items` : '';
    const [first, firstOfMany] = taken.map((all) => median(all.map(({ first_ms }) => first_ms))) as [number, number];
    const streamed = STREAMED.includes(template) ? `; first byte ${first.toFixed(2)}, ${firstOfMany.toFixed(2)}` : '';
    verdict(
      ratio <= GOAL,
      `${before.toFixed(2).padStart(7)} ${after.toFixed(2).padStart(8)}  ${ratio.toFixed(2)}${each}${streamed}  ${name}`,
    );
  }
  await small.close();
  await large.close();
} finally {
  await cluster.stop();
}

async function openAccount(name: string, size: Size) {
  cluster.psql('postgres', `create database ${name}`);
  const url = cluster.url(name);
  await migrateDatabase(url);
  const config = readConfig({
    DATA_DIR: join(scratch, name),
    SECRET_KEY: 'a secret key that only this bench uses, 0123456789',
    BOOTSTRAP_API_KEY: KEY,
    LOG_LEVEL: 'warn',
  });
  const deps = await createDeps(config, url, 'api');
  const { account_id, user_id } = await bootstrap(deps.db, { secrets: deps.secrets, config });
  const service = { deps, url, account_id, user_id, api_key: KEY, close: () => closeDeps(deps) };
  const world = await makeWorld(service, { account_id, call: testApi(service).call });
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  const roots = {
    account_id,
    destination_id: world.destination_id![0]!,
    connection_id: world.connection_id![0]!,
    stream_id: world.stream_id![0]!,
    trigger_id: world.trigger_id![0]!,
  };
  await fillAccount(sql, roots, size);
  // As workers do all the time.
  await closeDays(deps);
  await sumPeriods(deps);
  await sql`vacuum analyze`;
  await sql.end();
  const app = createApp(deps);
  const headers = { authorization: `Bearer ${KEY}` };
  return {
    reads: readsOf(contract, world, PAGE),
    close: service.close,
    async time(path: string): Promise<Answer> {
      const begun = performance.now();
      const answer = await app.handle(new Request(`http://localhost${path}`, { headers }));
      const chunks: Uint8Array[] = [];
      let first_ms = 0;
      for await (const chunk of answer.body ?? []) {
        first_ms ||= performance.now() - begun;
        chunks.push(chunk);
      }
      const ms = performance.now() - begun;
      const text = Buffer.concat(chunks).toString();
      if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`);
      return { ms, first_ms, items: itemsOf(answer.headers.get('content-type') ?? '', text) };
    },
  };
}

/** Items of a list, lines of a stream; 1 for other answers. */
function itemsOf(type: string, text: string): number {
  if (type.includes('ndjson')) return text.split('\n').length - 1;
  const parsed: unknown = type.includes('json') ? JSON.parse(text) : null;
  return Array.isArray(parsed) ? parsed.length : 1;
}
