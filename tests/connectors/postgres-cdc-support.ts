import { afterEach } from 'bun:test';
import type {
  Batch,
  DestinationSyncMode,
  ReadRequest,
  StreamState,
  WriteTarget,
} from '../../server/connectors/contract/connector.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import type { PostgresSourceConfig } from '../../server/connectors/postgres/connection/settings.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import {
  destinationConfig,
  requestOf,
  sourceConfig,
  targetColumn,
  targetOf,
  twoDatabases,
} from './postgres-support.ts';
import { logServer } from '../support/postgres.ts';

export interface Follower {
  reader_id: string;
  state: StreamState | null;
  /** One read and its commit, then what the engine does after it. */
  run(
    more?: Partial<ReadRequest>,
  ): Promise<{ rows_loaded: number; rows_updated: number; rows_deleted: number; batches: Batch[] }>;
  read(more?: Partial<ReadRequest>): Promise<Batch[]>;
  warnings: string[];
  /** Statements of another client, completed just before the next run sends one that matches `before`. */
  meanwhile: { before: RegExp; sql: string } | null;
}

/** Two databases and CDC consumers of one; slots and publications are dropped after each test. */
export function followers() {
  const sides = twoDatabases(logServer);
  const made: string[] = [];
  let runs = 0;
  const context = (more: Partial<PostgresSourceConfig> = {}) =>
    sourceConfig(sides.source, { replication: 'logical', ...more });
  afterEach(async () => {
    for (const id of made.splice(0)) await postgresSource.release!(context().ctx, id);
  });

  /** In a synchronous child process, so that nothing else runs in between. */
  const interrupt = ({ ctx }: ReturnType<typeof context>, follower: Follower) => {
    const { start } = ctx.recorder;
    ctx.recorder.start = (request) => {
      const { meanwhile } = follower;
      if (meanwhile?.before.test(request.body ?? '')) {
        follower.meanwhile = null;
        const { host, port, database, username, password } = sides.source.server;
        const url = `postgres://${username}:${encodeURIComponent(password)}@${host}:${port}/${database}`;
        const done = Bun.spawnSync(['psql', '-qX', '-v', 'ON_ERROR_STOP=1', url, '-c', meanwhile.sql]);
        if (!done.success) throw new Error(`psql: ${done.stderr.toString()}`);
      }
      return start(request);
    };
  };

  const discovered = async (table: string) => {
    const stream = (await postgresSource.discover(context().ctx)).find(({ name }) => name === table);
    if (!stream) throw new Error(`no stream ${table}`);
    return stream;
  };

  const follow = async (
    table: string,
    options: { mode?: DestinationSyncMode; target?: Partial<WriteTarget>; facts?: boolean } = {},
  ): Promise<Follower> => {
    const reader_id = crypto.randomUUID();
    made.push(reader_id);
    const mode = options.mode ?? 'append_dedup';
    const request = async (follower: Follower, more: Partial<ReadRequest>) => {
      const stream = await discovered(table);
      const fields = stream.fields.filter(({ source_type }) => options.facts || source_type !== null);
      const columns = fields.map((field) => ({ field, masking: 'none' as const }));
      return requestOf(stream, { sync_mode: 'incremental', columns, state: follower.state, reader_id, ...more });
    };
    const follower: Follower = {
      reader_id,
      state: null,
      warnings: [],
      meanwhile: null,
      async read(more = {}) {
        const source = context();
        const batches: Batch[] = [];
        for await (const batch of postgresSource.read(source.ctx, await request(follower, more))) batches.push(batch);
        follower.warnings.push(...source.warnings);
        return batches;
      },
      async run(more = {}) {
        const wanted = await request(follower, more);
        const id = String(++runs);
        const writer = await postgresDestination.open(
          destinationConfig(sides.destination).ctx,
          targetOf(wanted.stream, {
            columns: wanted.columns.map(({ field }) => targetColumn(field)),
            mode,
            fence: runs,
            stream_run_id: id,
            ...options.target,
          }),
        );
        const source = context();
        interrupt(source, follower);
        const batches: Batch[] = [];
        let state = follower.state;
        try {
          for await (const batch of postgresSource.read(source.ctx, wanted)) {
            batches.push({ ...batch, rows: batch.rows.map((row) => [...row]) });
            if (batch.rows.length > 0) await writer.write(batch);
            state = batch.state ?? state;
          }
          const counts = await writer.finish(state);
          follower.warnings.push(...source.warnings);
          follower.state = state;
          if (state) await postgresSource.acknowledge!(source.ctx, wanted, state);
          return { ...counts, batches };
        } finally {
          await writer.abort();
        }
      },
    };
    return follower;
  };

  /** Rows of both databases as text, ordered by key. */
  const both = async (table: string, columns = 't.*', order = 'id') => {
    const text = `select md5(coalesce(string_agg(x, E'\\n' order by x), '')) as sum, count(*)::int as n from (select row(${columns})::text as x from ${table} t order by ${order}) q`;
    const [[source], [destination]] = await Promise.all([
      sides.source.sql.unsafe(text),
      sides.destination.sql.unsafe(text),
    ]);
    return { source: { ...source }, destination: { ...destination } };
  };
  return { sides, follow, both, context, discovered };
}
