/**
 * `bun tests/bench/verify.ts [rows] [rounds]`: verifications of a table, PostgreSQL to PostgreSQL, against the run that
 * loads it: time, processor time, bytes, 1,000 injected faults, and false alarms under writes. Processor time is that of
 * the server and the worker together: it depends less on what else the machine does. Needs Debian's postgresql-15.
 */
import postgres from 'postgres';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { startCluster } from './cluster.ts';
import { median, report, type Times } from './report.ts';
import { runToEnd, startService } from './service.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const ROUNDS = Number(process.argv[3] ?? 3);
const FAULTS = 1000;
const WRITES_PER_SECOND = 200;

interface Verification {
  status: string;
  finished_at: string | null;
  streams: { status: string; missing: number; extra: number; different: number; changed_since: number }[];
}

const cluster = await startCluster();
const service = await startService();
const proxy = await startTcpProxy(cluster);
const source = postgres(cluster.url('src'), { max: 4, onnotice: () => {} });
try {
  cluster.psql(
    'src',
    `create table events as select i::bigint as id, (i % 100)::int as kind, 'note ' || md5(i::text) || repeat('x', i % 50) as note,
       (i * 1.2345)::numeric(14,4) as amount, now() - i * interval '1 second' as happened, i % 3 = 0 as flag
       from generate_series(1, ${ROWS}) i; alter table events add primary key (id)`,
  );
  cluster.psql('src', 'vacuum analyze events');
  const id = await connect();
  const times: Times = {};
  const work: Times = {};
  const worked = () => cluster.seconds() + service.seconds();
  const moved = { load: 0, verify: 0 };
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = proxy.bytes();
    const working = [worked()];
    (times.load ??= []).push((await runToEnd(service, id)).seconds);
    working.push(worked());
    const loaded = proxy.bytes();
    const begun = performance.now();
    const { status } = await verify(id);
    (times.verify ??= []).push((performance.now() - begun) / 1000);
    working.push(worked());
    for (const [at, name] of ['load', 'verify'].entries()) (work[name] ??= []).push(working[at + 1]! - working[at]!);
    if (status !== 'succeeded') throw new Error(`verification ${status}`);
    moved.load = loaded - before;
    moved.verify = proxy.bytes() - loaded;
  }
  report('Verification of a table that is equal', ROWS, times, [['verify', 'load', 2]]);
  const [loading, verifying] = [median(work.load!), median(work.verify!)];
  const shown = `${verifying.toFixed(2)} s to verify, ${loading.toFixed(2)} s to load`;
  console.log(`  processor time: ${shown}, ${(verifying / loading).toFixed(2)}, goal 0.5`);
  const share = ((100 * moved.verify) / moved.load).toFixed(2);
  console.log(`  bytes: ${moved.load} to load, ${moved.verify} to verify, ${share} %, goal 1`);
  await faults(id);
  await underWrites(id);
  console.log(`  worker's peak memory: ${service.workerPeakMb()} MB`);
} finally {
  await source.end();
  await service.stop();
  proxy.stop();
  await cluster.stop();
}

async function faults(id: string): Promise<void> {
  const third = Math.floor(FAULTS / 3);
  const step = Math.floor(ROWS / FAULTS);
  cluster.psql('dst', `update events set kind = kind + 1 where id % ${step} = 1 and id <= ${third * step}`);
  cluster.psql('dst', `delete from events where id % ${step} = 2 and id <= ${third * step}`);
  cluster.psql('dst', `insert into events select -i, 0 from generate_series(1, ${FAULTS - 2 * third}) i`);
  const begun = performance.now();
  const [stream] = (await verify(id)).streams;
  const found = (stream?.missing ?? 0) + (stream?.extra ?? 0) + (stream?.different ?? 0);
  const seconds = ((performance.now() - begun) / 1000).toFixed(2);
  console.log(`  ${found === FAULTS ? 'reached' : 'MISSED '} ${found} of ${FAULTS} faults found, in ${seconds} s`);
}

async function underWrites(id: string): Promise<void> {
  await runToEnd(service, id);
  let writes = 0;
  const every = setInterval(() => {
    const key = Math.ceil(Math.random() * ROWS);
    writes += 1;
    // The driver sends a query only once it is executed or awaited.
    void (
      writes % 4 === 0
        ? source`insert into events (id, kind) values (${ROWS + writes}, 1)`
        : source`update events set kind = kind + 1 where id = ${key}`
    ).execute();
  }, 1000 / WRITES_PER_SECOND);
  let alarms = 0;
  let changed = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const { status, streams } = await verify(id);
    alarms += status === 'succeeded' ? 0 : 1;
    changed = streams[0]?.changed_since ?? 0;
  }
  clearInterval(every);
  console.log(`  ${alarms === 0 ? 'reached' : 'MISSED '} ${alarms} false alarms in ${ROUNDS} under ${writes} writes`);
  console.log(`  ${changed} rows were named as changed since`);
  if (changed === 0) throw new Error('no write arrived');
}

async function verify(connection_id: string): Promise<Verification> {
  const id = await service.call<string>('POST', `/connections/${connection_id}/verifications`);
  for (;;) {
    const found = await service.call<Verification>('GET', `/verifications/${id}`);
    if (found.finished_at !== null) return found;
    await Bun.sleep(20);
  }
}

async function connect(): Promise<string> {
  const { host, username, password } = cluster;
  const end = async (connector_type: string, database: string) =>
    service.call<{ id: string }>('POST', '/account_connectors', {
      name: connector_type,
      connector_type,
      connector_name: 'postgres',
      parameters: { host, port: proxy.port, database, username, password, ssl_mode: 'disable' },
    });
  const { id: source_id } = await end('source', 'src');
  const { id: destination_id } = await end('destination', 'dst');
  const made = await service.call<{ id: string }>('POST', '/connections', {
    name: 'verified',
    source_id,
    destination_id,
    streams: [{ name: 'events', sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' }],
  });
  return made.id;
}
