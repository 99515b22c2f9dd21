/**
 * `bun tests/bench/publish-parts.ts [rows] [rounds]`: four connections of 20 MB/s each append to one table, whose rows
 * appear together: ways in which a server can do that, by psql alone, against one connection. Needs Debian's postgresql-15.
 */
import { join } from 'node:path';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { startCluster } from './cluster.ts';
import { quietRounds } from './quiet.ts';
import { report, type Times } from './report.ts';
import { scratchFolder } from './scratch.ts';

const ROWS = Number(process.argv[2] ?? 400_000);
const ROUNDS = Number(process.argv[3] ?? 3);
const RATE = 20_000_000;
const PARTS = [0, 1, 2, 3];
const OTHERS = PARTS.slice(1);

const folder = scratchFolder();
const cluster = await startCluster(['max_prepared_transactions=10']);
const line = await startTcpProxy(cluster, { upload_bytes_per_second: RATE });
try {
  cluster.psql(
    'dst',
    `create table kept as select i::bigint as id, (i % 100)::int as kind, repeat(md5(i::text), 29) as note,
       (i * 1.2345)::numeric(14,4) as amount, now() - i * interval '1 second' as happened from generate_series(1, ${ROWS}) i`,
  );
  for (const part of PARTS) {
    cluster.run(
      `psql -qX $DST -c "copy (select * from kept where id % ${PARTS.length} = ${part}) to stdout (format binary)" > ${file(part)}`,
    );
  }
  cluster.run(`psql -qX $DST -c "copy kept to stdout (format binary)" > ${folder}/all`);
  const direct = `psql -qX -v ON_ERROR_STOP=1 ${cluster.url('dst')}`;
  const limited = `psql -qX -v ON_ERROR_STOP=1 postgres://bench:bench@127.0.0.1:${line.port}/dst`;
  const copy = (into: string, from: string) => `${limited} -c "copy ${into} from stdin (format binary)" < ${from}`;
  const besides = (commands: string[]) => `${commands.map((one) => `${one} &`).join('\n')} wait`;
  const prepared = (part: number) =>
    `${limited} -c begin -c "copy target from stdin (format binary)" -c "prepare transaction 'part_${part}'" < ${file(part)}`;
  const commands = (statements: string[]) => statements.map((one) => `-c "${one}"`).join(' ');
  const attach = (part: number) => `alter table target attach partition part_${part} for values in (${part})`;
  const ways = {
    'one connection': copy('target', `${folder}/all`),
    'moved by insert … select': `
      ${direct} -c "create unlogged table beside as select * from target with no data"
      ${besides([...OTHERS.map((part) => copy('beside', file(part))), copy('target', file(0))])}
      ${direct} -c "begin; insert into target select * from beside; drop table beside; commit"`,
    'prepared transactions': `
      ${besides(PARTS.map(prepared))}
      ${direct} ${commands(PARTS.map((part) => `commit prepared 'part_${part}'`))}`,
    'attached partitions': `
      ${direct} ${commands([
        'drop table target',
        'create table target (like kept, part int) partition by list (part)',
        ...PARTS.map((part) => `create table part_${part} (like kept, part int default ${part} not null)`),
        ...PARTS.map((part) => `alter table part_${part} add check (part = ${part})`),
      ])}
      ${besides(PARTS.map((part) => copy(`part_${part} (id, kind, note, amount, happened)`, file(part))))}
      ${direct} -c "begin; ${PARTS.map(attach).join('; ')}; commit"`,
  };
  const times: Times = {};
  for await (const round of quietRounds(ROUNDS)) {
    const entries = Object.entries(ways);
    for (const [name, command] of round % 2 ? entries.toReversed() : entries) {
      cluster.psql(
        'dst',
        'set client_min_messages = warning; drop table if exists target; create table target (like kept)',
      );
      cluster.psql('dst', 'checkpoint');
      const processor = cluster.seconds();
      const seconds = await shell(command);
      console.log(`  ${name}: ${seconds.toFixed(2)} s, server ${(cluster.seconds() - processor).toFixed(2)} s`);
      (times[name] ??= []).push(seconds);
      cluster.psql('dst', `do $$ begin assert (select count(*) from target) = ${ROWS}; end $$`);
    }
  }
  const goals = Object.keys(ways)
    .slice(1)
    .map((way): [string, string, number] => [way, 'one connection', 1]);
  report('Four parts that appear together, 20 MB/s a connection', ROWS, times, goals);
} finally {
  line.stop();
  await cluster.stop();
}

/** Not `cluster.run`: the line is in this process. */
async function shell(command: string): Promise<number> {
  const begun = performance.now();
  const child = Bun.spawn(['bash', '-e', '-o', 'pipefail', '-c', command], { stdin: 'ignore', stderr: 'inherit' });
  if ((await child.exited) !== 0) throw new Error(`failed: ${command}`);
  return (performance.now() - begun) / 1000;
}

function file(part: number): string {
  return join(folder, `part_${part}`);
}
