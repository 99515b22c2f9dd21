import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Cell, TargetColumn } from '../../server/connectors/contract/connector.ts';
import { testMariaDb } from '../support/mariadb.ts';
import { WIDE_ROWS } from './reading.ts';
import type { Place } from './places.ts';

async function mysqlPlace() {
  const server = await testMariaDb();
  const database = await server.database();
  const { port, username, password } = server;
  const good = { host: '127.0.0.1', port, database, username, password, ssl_mode: 'disable' };
  const bad = {
    'wrong password': { ...good, password: 'wrong' },
    'no such database': { ...good, database: 'no_such_database' },
    'nobody listens': { ...good, port: 1 },
  };
  const sql = (text: string) => server.sql(text, database);
  const leftOpen = async () => {
    const rows = await server.sql(`select count(*) as n from information_schema.processlist where db = '${database}'`);
    return Number(rows[0]?.n);
  };
  const filesRoot = await mkdtemp(join(tmpdir(), 'data-pipelines-files-'));
  const close = async () => {
    await server.sql(`drop database ${database}`);
    await rm(filesRoot, { recursive: true });
  };
  return { filesRoot, good, bad, sql, leftOpen, close };
}

export async function mysqlSource(): Promise<Place> {
  const { sql, ...place } = await mysqlPlace();
  await sql(`create table many (id bigint primary key, name text, amount decimal(30, 5), at timestamp(6) not null,
    local datetime(3), day date, data json, bytes blob, ratio double, small float, flag bit(1), flags bit(10), long_time time(6),
    kind enum('a', 'b'), big bigint unsigned, year_of year, place point)`);
  await sql(`insert into many select seq, nullif(concat('Zoë ☃ ', seq), 'Zoë ☃ 7'), seq + 0.12345,
    timestamp '2026-01-01 00:00:00' + interval seq second, timestamp '2026-01-01 00:00:00.5', date '2026-01-01' + interval seq % 300 day,
    json_object('i', seq), x'deadbeef', seq / 3.0e0, seq / 7.0e0, seq % 2, seq % 1000, sec_to_time(seq * 100), 'b',
    18446744073709551615 - seq, 2026, point(seq, 0.5) from seq_1_to_${WIDE_ROWS}`);
  return place;
}

/** The cell, as it would be written. */
const shown = ({ name, type }: TargetColumn) => {
  if (type === 'boolean') return `if(${name}, 'true', 'false')`;
  if (type === 'timestamp_tz') return `concat(${name}, '+00')`;
  if (type === 'binary') return `concat('\\\\x', lower(hex(${name})))`;
  return type === 'number' ? `trim(trailing '.' from trim(trailing '0' from ${name}))` : `cast(${name} as char)`;
};

export async function mysqlDestination(): Promise<Place> {
  const { sql, ...place } = await mysqlPlace();
  const readTable: Place['readTable'] = async (table, columns) => {
    const found = await sql(
      `select 1 as there from information_schema.tables where table_schema = database() and table_name = '${table}'`,
    );
    if (found.length === 0) return null;
    const list = columns.map((column) => `${shown(column)} as ${column.name}`).join(', ');
    const rows = await sql(`select ${list} from \`${table}\``);
    return rows.map((row) => columns.map(({ name }) => row[name] as Cell));
  };
  return { ...place, readTable };
}
