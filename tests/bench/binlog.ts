/**
 * `bun tests/bench/binlog.ts [rows=300000] [rounds=2]`: a run that reads changes from the binary log of MariaDB into
 * PostgreSQL, beside a MariaDB replica that applies the same changes. Both begin with all of them in the log. Processor
 * time depends less on what else the machine does.
 */
import { startMariaDb } from '../support/mariadb.ts';
import { startCluster } from './cluster.ts';
import { processorSeconds } from './processor-seconds.ts';
import { median } from './report.ts';
import { runToEnd, startService } from './service.ts';

const ROWS = Number(process.argv[2] ?? 300_000);
const ROUNDS = Number(process.argv[3] ?? 2);
const GOAL = 0.8;
const SHAPES = [
  { name: 'transactions of 1,000 rows', transactions: Math.ceil(ROWS / 1000), rows: 1000 },
  { name: 'one transaction', transactions: 1, rows: ROWS },
  { name: 'transactions of one row', transactions: Math.ceil(ROWS / 5), rows: 1 },
];

const settingsOf = (server_id: number) => [
  '--innodb-buffer-pool-size=256M',
  '--log-bin=binlog',
  '--sync-binlog=0',
  `--server-id=${server_id}`,
  '--log-slave-updates',
  '--binlog-format=ROW',
  '--binlog-row-metadata=FULL',
];
const primary = await startMariaDb([
  ...settingsOf(1),
  '--innodb-flush-method=nosync',
  '--innodb-flush-log-at-trx-commit=0',
]);
// Both destinations wait for the disk at each commit, as they do by default.
const replica = await startMariaDb(settingsOf(2));
const cluster = await startCluster();
const service = await startService();

async function logEnd(): Promise<string> {
  const [row] = await primary.sql('select @@gtid_binlog_pos as position');
  return (row as { position: string }).position;
}

async function follow(): Promise<void> {
  await primary.sql(`create database src; create user reader identified by 'reader'; grant all on *.* to reader`);
  await replica.sql(`create database src; reset master; set global gtid_slave_pos = '${await logEnd()}';
    change master to master_host = '127.0.0.1', master_port = ${primary.port}, master_user = 'reader',
      master_password = 'reader', master_use_gtid = slave_pos, master_ssl = 0;
    start slave`);
  await primary.sql(
    `create table events (id bigint primary key, kind int, note text, amount decimal(14,4), happened datetime(6));
     insert into events select seq, seq % 100, concat('note ', md5(seq)), seq * 1.2345, now(6) from seq_1_to_${ROWS}`,
    'src',
  );
}

async function pipeline(): Promise<string> {
  const { host, port, username, password } = cluster;
  const end = async (connector_type: string, connector_name: string, parameters: object) => {
    const body = { name: connector_type, connector_type, connector_name, parameters };
    return (await service.call<{ id: string }>('POST', '/account_connectors', body)).id;
  };
  const connection = await service.call<{ id: string }>('POST', '/connections', {
    name: 'binary log',
    source_id: await end('source', 'mysql', {
      host: '127.0.0.1',
      port: primary.port,
      username: 'reader',
      password: 'reader',
      database: 'src',
      ssl_mode: 'disable',
      replication: 'logical',
    }),
    destination_id: await end('destination', 'postgres', {
      host,
      port,
      database: 'dst',
      username,
      password,
      ssl_mode: 'disable',
    }),
    streams: [{ name: 'events' }],
  });
  await runToEnd(service, connection.id);
  return connection.id;
}

async function change({ transactions, rows }: (typeof SHAPES)[number]): Promise<void> {
  const session = await primary.session('src');
  for (let at = 0; at < transactions; at += 1) {
    const from = (at * rows) % ROWS;
    await session.run(
      `update events set note = concat(note, '.'), happened = now(6) where id > ${from} and id <= ${from + rows}`,
    );
  }
  await session.close();
}

/** Processor seconds of the worker and of the servers so far. */
const used = () => [service.seconds(), processorSeconds(primary.pid), cluster.seconds()];

async function replicated(): Promise<number> {
  const end = await logEnd();
  const started = performance.now();
  await replica.sql(`start slave; select master_gtid_wait('${end}')`);
  return (performance.now() - started) / 1000;
}

try {
  await follow();
  const id = await pipeline();
  for (const shape of SHAPES) {
    const times = { ours: [] as number[], replica: [] as number[] };
    const work: number[][] = used().map(() => []);
    for (let round = 0; round < ROUNDS; round += 1) {
      await replica.sql('stop slave');
      await change(shape);
      // Each of them is first in half of the rounds.
      if (round % 2 === 0) times.replica.push(await replicated());
      const before = used();
      times.ours.push((await runToEnd(service, id)).seconds);
      const after = used();
      for (const [at, seconds] of after.entries()) work[at]!.push(seconds - before[at]!);
      if (round % 2 === 1) times.replica.push(await replicated());
    }
    const perSecond = (seconds: number[]) =>
      Math.round((shape.transactions * shape.rows) / median(seconds)).toLocaleString('en');
    const ratio = median(times.replica) / median(times.ours);
    const shown = `${perSecond(times.ours)} changes/s, ${ratio.toFixed(2)} of a replica's ${perSecond(times.replica)}`;
    console.log(`${ratio >= GOAL ? 'reached' : 'MISSED '} ${shape.name}: ${shown}, goal ${GOAL}`);
    const [worker, source, destination] = work.map((seconds) => median(seconds).toFixed(2));
    console.log(`  processor seconds: worker ${worker}, MariaDB ${source}, PostgreSQL ${destination}`);
    console.log(`  worker's peak memory so far: ${service.workerPeakMb()} MB`);
  }
} finally {
  await service.stop();
  await cluster.stop();
  await Promise.all([primary.stop(), replica.stop()]);
}
