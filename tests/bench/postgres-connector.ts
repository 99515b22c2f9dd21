/**
 * Raw speed of the two PostgreSQL connectors against psql's pipe. Needs PGHOST, PGPORT, PGUSER, PGPASSWORD, databases
 * src and dst.
 */
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { directConnect } from '../../server/connector-runtime/sockets.ts';
import type {
  ByteFormat,
  ConnectorContext,
  DestinationSyncMode,
  ReadRequest,
  WriteTarget,
} from '../../server/connectors/contract/connector.ts';

const rounds = Number(process.argv[2] ?? 4);
const table = process.argv[4] ?? 'events';
const server = {
  host: process.env.PGHOST!,
  port: Number(process.env.PGPORT),
  username: process.env.PGUSER!,
  password: process.env.PGPASSWORD!,
};
const context = (config: unknown) =>
  ({
    config,
    fetch,
    connect: directConnect({ allow: [], internal: true }, new AbortController().signal),
    recorder: { start: () => ({ done() {}, failed() {} }) },
    log: console,
    now: () => new Date(),
    signal: new AbortController().signal,
    filesRoot: '/nowhere',
    warn() {},
    rateLimited() {},
  }) as unknown as ConnectorContext<never>;
const from = context(postgresSource.config.parse({ ...server, database: 'src' }));
const to = context(postgresDestination.config.parse({ ...server, database: 'dst' }));
const stream = (await postgresSource.discover(from)).find(({ name }) => name === table)!;
let fence = Date.now();

async function move(format: ByteFormat | 'rows', mode: DestinationSyncMode) {
  const request: ReadRequest = {
    stream,
    columns: stream.fields.map((field) => ({ field, masking: 'none' })),
    filters: [],
    sync_mode: 'full_refresh',
    cursor_field: null,
    primary_key: [],
    state: null,
    window: null,
  };
  const target: WriteTarget = {
    schema: null,
    table: 'events',
    primary_key: mode === 'append' ? [] : ['id'],
    cursor_column: null,
    mode,
    connection_id: 'c',
    stream_id: 's',
    connection_run_id: 'r',
    stream_run_id: `run ${fence}`,
    fence: ++fence,
    state_version: 0,
    columns: stream.fields.map(({ path, type, source_type, dialect, nullable }) => ({
      name: path[0]!,
      type,
      source_type,
      dialect,
      nullable,
    })),
  };
  const writer = await postgresDestination.open(to, target);
  if (format === 'rows') {
    const batches = postgresSource.read(from, request)[Symbol.asyncIterator]();
    let next = batches.next();
    for (;;) {
      const { done, value } = await next;
      if (done) break;
      next = batches.next();
      await writer.write(value);
    }
  } else {
    if (!writer.byteFormats!.includes(format)) throw new Error(`no ${format}`);
    await writer.pipe!(await postgresSource.copy!(from, request, format));
  }
  return (await writer.finish(null)).rows_loaded;
}

const sh = async (command: string) => {
  if ((await Bun.spawn(['sh', '-c', command], { stdout: 'ignore' }).exited) !== 0) throw new Error(command);
};
const psql = (format: string) =>
  sh(
    `psql -d src -c "copy ${table} to stdout (format ${format})" | psql -d dst -qc "copy events from stdin (format ${format})"`,
  );
const ways: Record<string, () => Promise<unknown>> = {
  'psql binary': () => psql('binary'),
  'append binary': () => move('pgcopy-binary', 'append'),
  'psql text': () => psql('text'),
  'append text': () => move('pgcopy-text', 'append'),
  'append rows': () => move('rows', 'append'),
  'psql keyed': async () => {
    await sh('psql -d dst -qc "alter table events add primary key (id)"');
    await psql('binary');
  },
  'overwrite binary': () => move('pgcopy-binary', 'overwrite'),
  'overwrite rows': () => move('rows', 'overwrite'),
  'dedup binary': () => move('pgcopy-binary', 'append_dedup'),
};
const chosen = process.argv[3] ? process.argv[3].split(',') : Object.keys(ways);
const times = new Map<string, number[]>();
const columns = stream.fields.map(({ path, source_type }) => `${path[0]} ${source_type}`).join(', ');
for (let round = 0; round < rounds; round++) {
  for (const way of chosen) {
    await sh(`psql -d dst -qc "drop table if exists events" -c "create table events (${columns})" -c checkpoint`);
    const start = performance.now();
    const cpu = process.cpuUsage();
    await ways[way]!();
    const seconds = (performance.now() - start) / 1000;
    const used = process.cpuUsage(cpu);
    times.set(way, [...(times.get(way) ?? []), seconds]);
    console.log(
      round,
      way.padEnd(18),
      seconds.toFixed(2),
      'cpu',
      ((used.user + used.system) / 1e6).toFixed(2),
      'rss',
      (process.memoryUsage.rss() / 1e6).toFixed(0),
    );
  }
}
for (const [way, all] of times)
  console.log(
    way.padEnd(18),
    all.sort((a, b) => a - b)[Math.floor(all.length / 2)]!.toFixed(2),
    'min',
    all[0]!.toFixed(2),
  );
