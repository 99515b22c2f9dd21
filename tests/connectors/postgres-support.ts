import { afterAll, beforeAll } from 'bun:test';
import postgres from 'postgres';
import type {
  Batch,
  ByteFormat,
  Cell,
  ConnectorContext,
  Field,
  ReadRequest,
  RequestRecord,
  StreamSchema,
  StreamState,
  TargetColumn,
  WriteTarget,
} from '../../server/connectors/contract/connector.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import type {
  PostgresDestinationConfig,
  PostgresSourceConfig,
} from '../../server/connectors/postgres/connection/settings.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { directConnect } from '../../server/connector-runtime/sockets.ts';
import { createPlainDatabase, type TestDatabase } from '../support/database.ts';
import type { OwnServer } from '../support/postgres.ts';
import { limitHangs } from '../support/hangs.ts';

export interface Entry extends RequestRecord {
  status?: number | null;
  code?: string;
}
export interface TestContext<Config> {
  ctx: ConnectorContext<Config>;
  entries: Entry[];
  warnings: string[];
  abort: AbortController;
}

/** A context that exposes its records and warnings. */
export function contextOf<Config>(config: Config): TestContext<Config> {
  const entries: Entry[] = [];
  const warnings: string[] = [];
  const abort = new AbortController();
  const ctx: ConnectorContext<Config> = {
    config,
    fetch: globalThis.fetch,
    connect: directConnect({ allow: [], internal: true }, abort.signal),
    recorder: {
      start(request) {
        const entry: Entry = { ...request };
        entries.push(entry);
        return {
          done: (response) => void (entry.status = response.status),
          failed: (code) => void (entry.code = code),
        };
      },
    },
    log: { info() {}, warn() {} },
    now: () => new Date(),
    signal: abort.signal,
    filesRoot: '/nonexistent',
    warn: (code) => void warnings.push(code),
    rateLimited() {},
  };
  return { ctx, entries, warnings, abort };
}

export interface Side {
  sql: postgres.Sql;
  server: { host: string; port: number; database: string; username: string; password: string };
}

/** Two databases for the tests of one file: read them in tests only. Default: on the server that all tests share. */
export function twoDatabases(on?: () => Promise<Pick<OwnServer, 'url'>>): { source: Side; destination: Side } {
  limitHangs();
  const sides = {} as { source: Side; destination: Side };
  const made: { database: TestDatabase; sql: postgres.Sql }[] = [];
  beforeAll(async () => {
    const server = await on?.();
    for (const name of ['source', 'destination'] as const) {
      const database = await createPlainDatabase(server);
      const url = new URL(database.url);
      const sql = postgres(database.url, { max: 4, onnotice: () => {} });
      made.push({ database, sql });
      sides[name] = {
        sql,
        server: {
          host: url.hostname,
          port: Number(url.port),
          database: url.pathname.slice(1),
          username: decodeURIComponent(url.username),
          password: decodeURIComponent(url.password),
        },
      };
    }
  });
  afterAll(async () => {
    for (const { database, sql } of made) {
      await sql.end({ timeout: 5 });
      await database.drop();
    }
  });
  return sides;
}

export const sourceConfig = (side: Side, more: Partial<PostgresSourceConfig> = {}) =>
  contextOf(postgresSource.config.parse({ ...side.server, ...more }) as PostgresSourceConfig);
export const destinationConfig = (side: Side, more: Partial<PostgresDestinationConfig> = {}) =>
  contextOf(postgresDestination.config.parse({ ...side.server, ...more }) as PostgresDestinationConfig);

export async function streamNamed(side: Side, name: string): Promise<StreamSchema> {
  const streams = await postgresSource.discover(sourceConfig(side).ctx);
  const stream = streams.find((one) => one.name === name);
  if (!stream) throw new Error(`no stream ${name}`);
  return stream;
}

export const requestOf = (stream: StreamSchema, more: Partial<ReadRequest> = {}): ReadRequest => ({
  stream,
  columns: stream.fields.map((field) => ({ field, masking: 'none' })),
  filters: [],
  sync_mode: 'full_refresh',
  cursor_field: null,
  primary_key: stream.source_defined_primary_key ?? [],
  state: null,
  window: null,
  ...more,
});

export const targetColumn = ({ path, type, source_type, dialect, nullable }: Field): TargetColumn => ({
  name: path[0]!,
  type,
  source_type,
  dialect,
  nullable,
});

export const targetOf = (stream: StreamSchema, more: Partial<WriteTarget> = {}): WriteTarget => ({
  schema: null,
  table: stream.name,
  columns: stream.fields.map(targetColumn),
  primary_key: stream.source_defined_primary_key?.map((path) => path[0]!) ?? [],
  cursor_column: null,
  mode: 'append',
  connection_id: 'connection',
  stream_id: stream.name,
  connection_run_id: 'run',
  stream_run_id: 'stream-run',
  fence: 1,
  state_version: 0,
  ...more,
});

export const column = (name: string, type: TargetColumn['type']): TargetColumn => ({
  name,
  type,
  source_type: null,
  dialect: null,
  nullable: true,
});

export const batchOf = (rows: Cell[][], state?: StreamState): Batch => ({ rows, bytes: 100, state });

/** Moves a whole stream from source to destination by one of the three lanes. */
export async function moveStream(input: {
  from: ConnectorContext<PostgresSourceConfig>;
  to: ConnectorContext<PostgresDestinationConfig>;
  request: ReadRequest;
  target: WriteTarget;
  lane: ByteFormat | 'rows';
}) {
  const { from, to, request, target, lane } = input;
  const writer = await postgresDestination.open(to, target);
  try {
    if (lane !== 'rows') await writer.pipe!(await postgresSource.copy!(from, request, lane));
    else for await (const batch of postgresSource.read(from, request)) await writer.write(batch);
    return await writer.finish(null);
  } finally {
    await writer.abort();
  }
}

export async function readAll(ctx: ConnectorContext<PostgresSourceConfig>, request: ReadRequest) {
  const rows: Cell[][] = [];
  let state: StreamState | null = null;
  for await (const batch of postgresSource.read(ctx, request)) {
    rows.push(...batch.rows);
    state = batch.state ?? state;
  }
  return { rows, state };
}

/** How many connections of the connectors a database has; `state` as in pg_stat_activity. */
export async function backends({ sql, server }: Side, state?: string): Promise<number> {
  const rows = await sql`select state from pg_stat_activity
    where datname = ${server.database} and application_name = 'data-pipelines'`;
  return rows.filter((row) => state === undefined || row.state === state).length;
}
