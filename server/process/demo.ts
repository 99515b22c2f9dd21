import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseAccess } from '../../db/embedded.ts';
import { accountConnectors } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';

const ROWS = 200_000;
const SCHEMA = 'demo';
const ENDED = ['succeeded', 'partially_succeeded', 'failed', 'stopped', 'skipped'];
const POLL_MS = 250;
const LIMIT_MS = 10 * 60_000;

export interface DemoOptions {
  db: Db;
  /** The address of this service: the demo uses the public API. */
  address: string;
  /** The administrator's key; null if it was created at an earlier start. */
  api_key: string | null;
  /** Null with a DATABASE_URL: the demo must not create tables on a server of the operator. */
  warehouse: DatabaseAccess | null;
  say(line: string): void;
}

interface StreamRun {
  stream_name: string;
  status: string;
  rows_read: number;
  rows_loaded: number;
  duration_ms: number | null;
  error: { message: string } | null;
}

type Call = <T>(method: string, path: string, body?: unknown) => Promise<T>;

/**
 * Creates and runs a pipeline from the source `demo` to the warehouse, unless the service has account connectors already.
 * Reports its progress and never throws, because the service works without the demo.
 */
export async function runDemo(options: DemoOptions): Promise<void> {
  const { db, api_key, warehouse, say } = options;
  try {
    const [used] = await db.select({ id: accountConnectors.id }).from(accountConnectors).limit(1);
    if (used) return;
    if (!warehouse) return say('Demo skipped: it needs the embedded PostgreSQL, but DATABASE_URL is set');
    if (api_key === null) return say('Demo skipped: it needs the API key that was shown at the first start');
    const call = callerOf(options.address, api_key);
    const connection_id = await buildPipeline(call, warehouse);
    await followRun(call, { connection_id, say });
    const { host, port, database, username, password } = warehouse;
    say(`  See the rows: psql "postgres://${username}:${password}@${host}:${port}/${database}", schema ${SCHEMA}`);
    say('  Set DEMO=0 to start without the demo');
  } catch (error) {
    say(`The demo failed: ${(error as Error).message}`);
  }
}

async function buildPipeline(call: Call, warehouse: DatabaseAccess): Promise<string> {
  const source = await call<{ id: string }>('POST', '/account_connectors', {
    name: 'Demo',
    connector_type: 'source',
    connector_name: 'demo',
    parameters: { rows: ROWS },
  });
  const destination = await call<{ id: string }>('POST', '/account_connectors', {
    name: 'Warehouse',
    connector_type: 'destination',
    connector_name: 'postgres',
    parameters: { ...warehouse, ssl_mode: 'disable' },
  });
  await catalogOf(call, source.id);
  const connection = await call<{ id: string }>('POST', '/connections', {
    name: 'Demo to warehouse',
    source_id: source.id,
    destination_id: destination.id,
    destination_schema: SCHEMA,
  });
  return connection.id;
}

/** Waits for discovery, which runs in the worker. The worker may still be starting. */
async function catalogOf(call: Call, id: string): Promise<void> {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await sleep(POLL_MS)) {
    const source = await call<{ catalog_status: string }>('GET', `/account_connectors/source/${id}`);
    if (source.catalog_status === 'ready') return;
    if (source.catalog_status === 'failed') throw new Error('discovery of the source failed');
  }
  throw new Error('discovery of the source did not finish within a minute');
}

async function followRun(call: Call, options: { connection_id: string; say(line: string): void }): Promise<void> {
  const { connection_id, say } = options;
  const started = performance.now();
  const run_id = await call<string>('POST', `/connections/${connection_id}/run`);
  say('Demo: running a pipeline from the source "demo" to the database "warehouse"');
  const shown = new Map<string, string>();
  for (const deadline = Date.now() + LIMIT_MS; Date.now() < deadline; await sleep(POLL_MS)) {
    const streams = await call<StreamRun[]>('GET', `/connections/${connection_id}/runs/${run_id}/stream_runs`);
    for (const stream of streams) {
      const line = describe(stream);
      if (line !== null && shown.get(stream.stream_name) !== line) say(line);
      if (line !== null) shown.set(stream.stream_name, line);
    }
    if (streams.length > 0 && streams.every((stream) => ENDED.includes(stream.status))) {
      return summarise(streams, { seconds: (performance.now() - started) / 1000, say });
    }
  }
  throw new Error(`run ${run_id} did not end within ${LIMIT_MS / 60_000} minutes`);
}

function describe(stream: StreamRun): string | null {
  const { stream_name, status, rows_read, rows_loaded, duration_ms, error } = stream;
  if (status === 'pending') return null;
  if (error) return `  ${stream_name}: ${status}, ${error.message}`;
  const pace = duration_ms ? `, ${number(rows_loaded / (duration_ms / 1000))} rows/s` : '';
  if (status === 'succeeded') return `  ${stream_name}: ${number(rows_loaded)} rows loaded${pace}`;
  return `  ${stream_name}: ${status}, ${number(rows_read)} rows read`;
}

function summarise(streams: StreamRun[], options: { seconds: number; say(line: string): void }): void {
  const rows = streams.reduce((sum, stream) => sum + stream.rows_loaded, 0);
  const { seconds, say } = options;
  const bad = streams.filter((stream) => stream.status !== 'succeeded').length;
  const outcome = bad === 0 ? 'succeeded' : `ended, ${bad} of ${streams.length} streams not loaded`;
  say(`  ${outcome}: ${number(rows)} rows in ${seconds.toFixed(1)} s, ${number(rows / seconds)} rows/s`);
}

const number = (value: number) => Math.round(value).toLocaleString('en-US');

/** A service that listens on all addresses is reachable on the loopback address. */
const reachable = (address: string) => address.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');

function callerOf(address: string, api_key: string): Call {
  return async <T>(method: string, path: string, body?: unknown) => {
    const response = await fetch(`${reachable(address)}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${api_key}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(60_000),
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} responded ${response.status}: ${answer.slice(0, 500)}`);
    return JSON.parse(answer) as T;
  };
}
