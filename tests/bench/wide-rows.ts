import { DuckDBInstance } from '@duckdb/node-api';
import { Database } from 'bun:sqlite';
import { copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { startMariaDb } from '../support/mariadb.ts';
import type { Cluster } from './cluster.ts';

export interface Places {
  cluster: Cluster;
  /** With a database `wide`. */
  mariadb: Awaited<ReturnType<typeof startMariaDb>>;
  folder: string;
}

export type Kind = 'postgres' | 'csv' | 'jsonl' | 'sqlite' | 'mysql' | 'duckdb';

/** Text of hexadecimal digits, `width` long, of a number. */
const note = (width: number, number: string) => `left(repeat(md5(${number}), ${Math.ceil(width / 32)}), ${width})`;

/** Creates the table `t` of `rows` rows again, equal in every database. */
export async function makeWide(
  { cluster, mariadb, folder }: Places,
  kinds: ReadonlySet<Kind>,
  { width, rows }: { width: number; rows: number },
): Promise<void> {
  // So that PostgreSQL does not store them compressed.
  cluster.psql(
    'src',
    `drop table if exists t; create table t (id bigint, note text); alter table t alter note set storage external;
     insert into t select i, ${note(width, 'i::text')} from generate_series(1, ${rows}) i`,
  );
  const copied = (what: string, name: string, options: string) =>
    cluster.time(`psql -qX $SRC -c "\\copy ${what} to '${join(folder, name)}' ${options}"`);
  if (kinds.has('csv')) copied('t', 't.csv', '(format csv, header)');
  if (kinds.has('jsonl')) copied('(select row_to_json(t) from t)', 't.jsonl', '');
  if (kinds.has('sqlite')) makeSqlite(join(folder, 't.sqlite'), { width, rows });
  if (kinds.has('duckdb')) await makeDuckDb(join(folder, 't.duckdb'), { width, rows });
  if (!kinds.has('mysql')) return;
  await mariadb.sql(
    `drop table if exists t; create table t (id bigint, note longtext character set utf8mb4);
     insert into t select seq, ${note(width, 'seq')} from seq_1_to_${rows}`,
    'wide',
  );
}

function makeSqlite(path: string, { width, rows }: { width: number; rows: number }): void {
  rmSync(path, { force: true });
  const database = new Database(path);
  database.run('create table t (id integer, note text)');
  const insert = database.prepare('insert into t values (?, ?)');
  database.transaction(() => {
    for (let id = 1; id <= rows; id++)
      insert.run(
        id,
        new Bun.MD5()
          .update(String(id))
          .digest('hex')
          .repeat(Math.ceil(width / 32)),
      );
  })();
  database.close();
}

/** In small steps: the rows of one statement must fit into DuckDB's memory. */
async function makeDuckDb(path: string, { width, rows }: { width: number; rows: number }): Promise<void> {
  rmSync(path, { force: true });
  const instance = await DuckDBInstance.create(path);
  const connection = await instance.connect();
  const step = Math.max(1, Math.floor(10_000_000 / width));
  await connection.run('create table t (id bigint, note varchar)');
  for (let from = 1; from <= rows; from += step) {
    const until = Math.min(from + step, rows + 1);
    await connection.run(`insert into t select i, ${note(width, 'i::varchar')} from range(${from}, ${until}) r(i)`);
  }
  connection.closeSync();
  instance.closeSync();
}

const FILES = ['t.csv', 't.jsonl', 't.sqlite', 't.duckdb'];

/** Copies the files of `makeWide` to where a service finds them. */
export function giveFiles(folder: string, dataDir: string): void {
  mkdirSync(join(dataDir, 'files'), { recursive: true });
  for (const name of FILES) {
    if (existsSync(join(folder, name))) copyFileSync(join(folder, name), join(dataDir, 'files', name));
  }
}
