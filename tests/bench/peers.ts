/**
 * `bun tests/bench/peers.ts [rows] [rounds]`: one table or file into PostgreSQL, by this service and by other programs
 * that copy data, on the same servers in the same run: seconds from the command to its end, and the peak memory of
 * all its processes without the databases. For the service the seconds are those from POST …/run to `succeeded`, and the
 * memory that of its API and worker; all others are started for each copy, as their users do. PEERS is the folder of
 * tests/bench/peers/install.sh. A peer that takes more than a minute is ended. Needs Debian's postgresql-15 and
 * mariadb-server.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { startMariaDb } from '../support/mariadb.ts';
import { startCluster } from './cluster.ts';
import { COLUMNS, type Contestant, contestants, spelled } from './peers/contestants.ts';
import { watchMemory } from './peers/process-memory.ts';
import { quietRounds } from './quiet.ts';
import { median, record } from './report.ts';
import { scratchFolder } from './scratch.ts';
import { runToEnd, startService } from './service.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const ROUNDS = Number(process.argv[3] ?? 3);
/** A peer that takes longer is ended. */
const LIMIT_SECONDS = 60;
const OURS = 'This service';
const POSTGRES = /(^|\/)postgres\b/;

interface Measured {
  seconds: number[];
  megabytes: number[];
  failure?: string;
}

const peers = contestants(process.env.PEERS ?? '');
for (const { name, version, missing } of peers)
  console.log(`  ${name}: ${missing ? `missing, see ${missing}` : version}`);
const cluster = await startCluster();
const mariadb = await startMariaDb(['--innodb-buffer-pool-size=1G', '--innodb-log-file-size=1G']);
const service = await startService();
const folder = scratchFolder();
try {
  const files = join(service.data_dir, 'files');
  const sources = await prepare();
  for (const [kind, source] of Object.entries(sources)) {
    const measured: Record<string, Measured> = { [OURS]: { seconds: [], megabytes: [] } };
    const connection = await connect(kind, source.parameters);
    const able = peers.filter(({ commands, missing }) => !missing && kind in commands);
    for await (const _ of quietRounds(ROUNDS)) {
      const ours = watchMemory(service.pid, POSTGRES);
      const { seconds } = await runToEnd(service, connection);
      note((measured[OURS] ??= { seconds: [], megabytes: [] }), seconds, ours.stop());
      verify('ours', 'public.events', OURS);
      for (const peer of able) {
        const result = (measured[peer.name] ??= { seconds: [], megabytes: [] });
        if (result.failure) continue;
        await copyBy(peer, kind as keyof typeof sources, source.url, result);
      }
    }
    print(kind, measured);
  }

  async function prepare() {
    mkdirSync(files, { recursive: true });
    cluster.psql('src', `create table events (${COLUMNS}, primary key (id))`);
    cluster.psql(
      'src',
      `insert into events select i, i % 100, 'note ' || md5(i::text) || ', "quoted"', i * 1.25,
        timestamptz '2024-01-01 00:00+00' + i * interval '1 second',
        jsonb_build_object('i', i, 'tags', jsonb_build_array('a', i % 10))::text, i % 3 = 0, i / 8.0
        from generate_series(1, ${ROWS}) i`,
    );
    cluster.psql('src', 'vacuum analyze events');
    cluster.psql('postgres', 'create database ours');
    await mariadb.sql('create database bench');
    // Its password can stand in a URL as it is.
    await mariadb.sql("create user bench@'%' identified by 'bench'; grant all on bench.* to bench@'%'");
    await mariadb.sql(
      `create table events (id bigint primary key, kind bigint, note text, amount decimal(18,2), happened timestamp(6),
         payload text, flag tinyint(1), score double);
       insert into events select seq, seq % 100, concat('note ', md5(seq), ', "quoted"'), seq * 1.25,
         timestamp '2024-01-01 00:00:00' + interval seq second,
         json_object('i', seq, 'tags', json_array('a', seq % 10)), seq % 3 = 0, seq / 8.0e0 from seq_1_to_${ROWS};
       analyze table events`,
      'bench',
    );
    const csv = join(files, 'events.csv');
    const parquet = join(files, 'events.parquet');
    cluster.time(`psql -qX $SRC -c "copy events to stdout (format csv, header)" > ${csv}`);
    const duck = await (await DuckDBInstance.create(':memory:')).connect();
    await duck.run(`copy (from read_csv('${csv}')) to '${parquet}' (format parquet, compression zstd)`);
    duck.closeSync();
    const { host, port, username, password } = cluster;
    return {
      pg: {
        url: cluster.url('src'),
        parameters: { host, port, database: 'src', username, password, ssl_mode: 'disable' },
      },
      mysql: {
        url: `mysql://bench:bench@127.0.0.1:${mariadb.port}/bench`,
        parameters: {
          host: mariadb.host,
          port: mariadb.port,
          database: 'bench',
          username: mariadb.username,
          password: mariadb.password,
          ssl_mode: 'disable',
        },
      },
      csv: { url: csv, parameters: { location: 'local', path: 'events.csv', format: 'csv' } },
      parquet: { url: parquet, parameters: { location: 'local', path: 'events.parquet' } },
    };
  }

  async function connect(kind: string, parameters: object): Promise<string> {
    const { host, port, username, password } = cluster;
    const connector = kind === 'pg' ? 'postgres' : kind === 'mysql' ? 'mysql' : 'file';
    const end = async (connector_type: string, connector_name: string, own: object) => {
      const body = { name: `${kind} ${connector_type}`, connector_type, connector_name, parameters: own };
      const made = await service.call<{ id: string; status: string }>('POST', '/account_connectors', body);
      if (made.status !== 'active') throw new Error(`${body.name} is ${made.status}`);
      return made.id;
    };
    const made = await service.call<{ id: string }>('POST', '/connections', {
      name: kind,
      source_id: await end('source', connector, parameters),
      destination_id: await end('destination', 'postgres', {
        host,
        port,
        database: 'ours',
        username,
        password,
        ssl_mode: 'disable',
      }),
      streams: [
        {
          name: 'events',
          sync_mode: 'full_refresh',
          destination_sync_mode: 'overwrite',
          destination_table: 'events',
          shared_destination_table: true,
          ...(connector !== 'file' && { primary_key: [['id']] }),
        },
      ],
    });
    return made.id;
  }

  async function copyBy(peer: Contestant, kind: keyof typeof sources, source: string, into: Measured): Promise<void> {
    const database = `peer_${peer.name.toLowerCase().replaceAll(/\W/g, '_')}`;
    cluster.psql('postgres', `drop database if exists ${database} with (force)`);
    cluster.psql('postgres', `create database ${database}`);
    const own = join(folder, database);
    rmSync(own, { recursive: true, force: true });
    mkdirSync(own, { recursive: true });
    const begun = performance.now();
    const child = Bun.spawn(['bash', '-euo', 'pipefail', '-c', peer.commands[kind] ?? 'false'], {
      env: {
        ...process.env,
        ...peer.env,
        HOME: own,
        DIR: own,
        SRC: spelled(peer.name, kind, source),
        DST: spelled(peer.name, 'pg', cluster.url(database)),
      },
      cwd: own,
      stdout: 'pipe',
      stderr: 'pipe',
      // A process group of its own, which ends as one.
      detached: true,
    });
    const memory = watchMemory(child.pid);
    const limit = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), LIMIT_SECONDS * 1000);
    const [out, error, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    clearTimeout(limit);
    note(into, (performance.now() - begun) / 1000, memory.stop());
    try {
      if (code === 137) throw new Error(`took more than ${LIMIT_SECONDS} s`);
      if (code !== 0) throw new Error(`ended with ${code}: ${(error || out).trim().slice(-600)}`);
      verify(database, peer.table, peer.name);
    } catch (failure) {
      into.failure = (failure as Error).message;
      console.log(`  ${peer.name}, ${kind}: ${into.failure}`);
    }
  }

  /** A copy that lost a row is none. */
  function verify(database: string, table: string, name: string): void {
    const { stdout } = Bun.spawnSync(
      ['psql', '-qXAt', cluster.url(database), '-c', `select count(*) || ' ' || sum(id::bigint) from ${table}`],
      { stderr: 'inherit' },
    );
    const expected = `${ROWS} ${(ROWS * (ROWS + 1)) / 2}`;
    if (stdout.toString().trim() !== expected) throw new Error(`${name} copied "${stdout.toString().trim()}"`);
  }
} finally {
  await service.stop();
  await mariadb.stop();
  await cluster.stop();
}

function note(into: Measured, seconds: number, megabytes: number): void {
  into.seconds.push(seconds);
  into.megabytes.push(megabytes);
}

function print(kind: string, measured: Record<string, Measured>): void {
  const ours = measured[OURS];
  console.log(`\n${kind} to pg, ${ROWS.toLocaleString('en')} rows, medians`);
  const figures: Record<string, number> = {};
  for (const [name, { seconds, megabytes, failure }] of Object.entries(measured)) {
    if (failure) {
      console.log(`  ${name.padEnd(20)} ${failure.split('\n')[0]}`);
      figures[`${name}: failed after`] = median(seconds);
      continue;
    }
    const times = median(seconds) / median(ours?.seconds ?? []);
    const memory = Math.max(...megabytes);
    figures[`${name}: seconds`] = median(seconds);
    figures[`${name}: megabytes`] = memory;
    console.log(
      `  ${name.padEnd(20)} ${median(seconds).toFixed(2).padStart(7)} s   ${times.toFixed(2)} of ours   ${memory} MB   (${seconds.map((one) => one.toFixed(2)).join(' ')})`,
    );
  }
  record({ title: `peers: ${kind} to pg`, rows: ROWS, figures });
}
