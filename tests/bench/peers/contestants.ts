import { existsSync } from 'node:fs';
import { join } from 'node:path';

type Kind = 'pg' | 'mysql' | 'csv' | 'parquet';

/** A program that copies the table or file `events` into the table `events` of PostgreSQL. */
export interface Contestant {
  name: string;
  missing: string | null;
  version: string;
  /** Shell commands for what it can do; `$SRC`, `$DST` and `$DIR` are both addresses and an empty folder. */
  commands: Partial<Record<Kind, string>>;
  /** The table in its destination. */
  table: string;
  env?: Record<string, string>;
}

export const COLUMNS =
  'id bigint, kind bigint, note text, amount numeric(18,2), happened timestamptz, payload text, flag boolean, score double precision';
const NAMES = COLUMNS.replaceAll(/(\w+) [^,(]+(\([^)]*\))?/g, '$1');
const SCRIPTS = import.meta.dir;

export function contestants(installed: string): Contestant[] {
  const python = (peer: string) => join(installed, peer, 'bin/python');
  const ingestr = join(installed, 'ingestr/bin/ingestr');
  const sling = join(installed, 'sling/bin/sling');
  const load = (kind: string) => `${python('dlt')} ${SCRIPTS}/dlt_load.py ${kind} $SRC $DST events`;
  const airbyte = (kind: string) => `${python('airbyte')} ${SCRIPTS}/airbyte_load.py ${kind} $SRC $DST public`;
  const run = (stream: string) =>
    `${sling} run --src-stream ${stream} --tgt-conn DST --tgt-object public.events --mode full-refresh`;
  const ingest = (table: string) =>
    `${ingestr} ingest --yes --full-refresh --progress log --source-uri $SRC --source-table ${table} --dest-uri $DST --dest-table public.events`;
  return [
    {
      name: 'pgcopydb',
      missing: Bun.which('pgcopydb') ? null : "Debian's package pgcopydb",
      version: versionOf('pgcopydb', '--version'),
      commands: {
        pg: 'pgcopydb clone --source $SRC --target $DST --table-jobs 2 --index-jobs 2 --no-owner --no-acl --dir $DIR/pgcopydb',
      },
      table: 'public.events',
    },
    {
      name: 'pgloader',
      missing: Bun.which('pgloader') ? null : "Debian's package pgloader",
      version: versionOf('pgloader', '--version'),
      commands: {
        pg: loadFile('load database from $SRC into $DST with include drop, create tables, create indexes;'),
        mysql: loadFile(
          `load database from $SRC into $DST with include drop, create tables, create indexes alter schema 'bench' rename to 'public';`,
        ),
        csv: `psql -qX $DST -c 'create table events (${COLUMNS})' && ${loadFile(
          `load csv from '$SRC' (${NAMES}) into $DST target table public.events (${NAMES}) with skip header = 1, fields optionally enclosed by '\\"', fields terminated by ',';`,
        )}`,
      },
      table: 'public.events',
    },
    {
      name: 'Sling',
      missing: missing(sling),
      version: versionOf(sling, '--version'),
      commands: {
        pg: `${run('public.events')} --src-conn SRC`,
        mysql: `${run('bench.events')} --src-conn SRC`,
        csv: run('file://$SRC'),
        parquet: run('file://$SRC'),
      },
      table: 'public.events',
      // It reads Parquet by DuckDB's program, which it would download.
      env: { SLING_DISABLE_TELEMETRY: 'true', DUCKDB_PATH: join(installed, 'sling/bin/duckdb') },
    },
    {
      name: 'dlt',
      missing: missing(python('dlt')),
      version: versionOf(python('dlt'), '-c', 'import importlib.metadata as m; print(m.version("dlt"))'),
      commands: { pg: load('sql'), mysql: load('sql'), csv: load('csv'), parquet: load('parquet') },
      table: 'public.events',
      env: { RUNTIME__DLTHUB_TELEMETRY: 'false' },
    },
    {
      name: 'ingestr',
      missing: missing(ingestr),
      version: versionOf(ingestr, '--version'),
      commands: { pg: ingest('public.events'), mysql: ingest('bench.events'), csv: ingest('events') },
      table: 'public.events',
      env: { INGESTR_DISABLE_TELEMETRY: 'true', TELEMETRY_OFF: '1' },
    },
    {
      name: 'Airbyte protocol',
      missing: missing(python('airbyte')),
      version: versionOf(python('airbyte'), '-c', 'import importlib.metadata as m; print(m.version("airbyte"))'),
      commands: { pg: airbyte('sql'), mysql: airbyte('sql'), csv: airbyte('csv'), parquet: airbyte('parquet') },
      table: 'public.events',
      env: { DO_NOT_TRACK: '1', AIRBYTE_NO_UV: '1', AIRBYTE_OFFLINE_MODE: '1' },
    },
  ];
}

/** How a contestant spells the address of a source or destination. */
export function spelled(name: string, kind: Kind, url: string): string {
  if (kind === 'csv' && name === 'ingestr') return `csv://${url}`;
  if (kind === 'mysql' && ['dlt', 'ingestr', 'Airbyte protocol'].includes(name)) {
    return url.replace('mysql:', 'mysql+pymysql:');
  }
  if (kind === 'pg' && ['dlt', 'ingestr', 'Airbyte protocol'].includes(name)) {
    return url.replace('postgres:', 'postgresql:');
  }
  if (kind === 'pg' && name === 'Sling') return `${url}?sslmode=disable`;
  return kind === 'pg' ? url.replace('postgres:', 'postgresql:') : url;
}

const missing = (program: string) => (existsSync(program) ? null : `tests/bench/peers/install.sh`);

const loadFile = (script: string) => `echo "${script}" > $DIR/load && pgloader --quiet $DIR/load`;

function versionOf(...command: string[]): string {
  try {
    const { stdout, stderr } = Bun.spawnSync(command, { stdout: 'pipe', stderr: 'pipe' });
    return /\d+\.\d+(\.\d+)?/.exec(stdout.toString() + stderr.toString())?.[0] ?? 'unknown';
  } catch {
    return 'missing';
  }
}
