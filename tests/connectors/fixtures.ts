import { mkdtemp, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { SQL } from 'bun';
import type { Cell, Inbox } from '../../server/connectors/contract/connector.ts';
import { literal, openDuckDb } from '../../server/connectors/kits/duckdb/instance.ts';
import { fileSource } from '../../server/connectors/file/source.ts';
import { tablePath } from '../../server/connectors/kits/files/stores/table-paths.ts';
import { createPlainDatabase } from '../support/database.ts';
import { SLACK_TOKEN, startSlackServer } from '../support/slack-server.ts';
import {
  ftpSource,
  gcsDestination,
  httpSource,
  s3Destination,
  s3ParquetSource,
  s3Source,
  sftpDestination,
  sftpSource,
} from './file-places.ts';
import { ftpdMissing } from '../support/ftpd.ts';
import { sshdMissing } from '../support/sshd.ts';
import { HTTP_API_FIXTURES, HTTP_FIXTURES, MANIFEST_FIXTURES } from './http-fixtures.ts';
import { mariaDbMissing } from '../support/mariadb.ts';
import { mysqlDestination, mysqlSource } from './mysql-places.ts';
import { duckDbDestinationPlace, duckDbSourcePlace } from './duckdb-places.ts';
import { readRows, ROWS, WIDE_ROWS } from './reading.ts';
import { sqliteSourcePlace } from './sqlite-places.ts';
import { type Place, contextOf, folderPlace } from './places.ts';

const csvRow = (index: number) =>
  `${index},"Zoë ""${index}"", ☃",${index % 2 ? '' : '""'},${index}.50,2026-01-31 23:59:${String(index % 60).padStart(2, '0')}Z`;

async function csvSource(): Promise<Place> {
  const place = await folderPlace();
  const lines = (from: number, to: number) =>
    ['id,name,note,amount,at', ...Array.from({ length: to - from }, (_, at) => csvRow(from + at)), ''].join('\r\n');
  await Bun.write(join(place.filesRoot, 'in/a.csv'), lines(0, ROWS));
  await Bun.write(join(place.filesRoot, 'in/b.csv.gz'), gzipSync(lines(ROWS, ROWS + 100)));
  const bad = { 'no such file': { path: 'in/none.csv' }, 'outside the root': { path: '../in/a.csv' } };
  return { ...place, good: { path: 'in/*.csv*', include_file_columns: true, primary_key: ['id'] }, bad };
}

async function jsonlSource(): Promise<Place> {
  const place = await folderPlace();
  const line = (id: number) =>
    JSON.stringify({ id, name: `Zoë ${id} ☃`, nested: { id }, list: [id], on: id % 2 === 0 });
  const text = Array.from({ length: ROWS }, (_, id) => `${line(id)}\n`).join('');
  await Bun.write(join(place.filesRoot, 'rows.jsonl'), text);
  await Bun.write(join(place.filesRoot, 'broken.jsonl'), '{"id": 1}\n{"id": \n');
  return { ...place, good: { path: 'rows.jsonl' }, bad: { 'broken JSON': { path: 'broken.jsonl' } } };
}

async function xmlSource(): Promise<Place> {
  const place = await folderPlace();
  const row = (id: number) => `<row id="${id}"><name>Zoë ${id} ☃</name><on>${id % 2 === 0}</on><n a="1"/><n/></row>\n`;
  const rows = Array.from({ length: ROWS }, (_, id) => row(id)).join('');
  await Bun.write(join(place.filesRoot, 'rows.xml'), `<table><rows>\n${rows}</rows></table>`);
  await Bun.write(join(place.filesRoot, 'half.xml'), '<table><rows><row id="1"/>');
  const good = { path: 'rows.xml', record_element: 'table/rows/row' };
  return { ...place, good, bad: { 'half a document': { path: 'half.xml' } } };
}

async function fixedWidthSource(): Promise<Place> {
  const place = await folderPlace();
  const line = (id: number) => `${String(id).padStart(8)}${`Zoë ${id} ☃`.padEnd(20)}${id % 2 ? 'true' : ''}`.padEnd(33);
  await Bun.write(join(place.filesRoot, 'rows.txt'), Array.from({ length: ROWS }, (_, id) => `${line(id)}\n`).join(''));
  await Bun.write(join(place.filesRoot, 'short.txt'), '1\n');
  const columns = ['id:8', 'name:20', 'on:5'];
  const good = { path: 'rows.txt', format: 'fixed_width', fixed_width_columns: columns };
  return { ...place, good, bad: { 'a short line': { ...good, path: 'short.txt' } } };
}

async function parquetSource(): Promise<Place> {
  const place = await folderPlace();
  const duck = await openDuckDb();
  await duck.connection.run(
    `COPY (SELECT i AS id, (i || '.25')::DECIMAL(20, 2) AS amount, TIMESTAMPTZ '2026-01-31 23:59:59.123456+02' AS at,
      '\\xAA'::BLOB AS bytes, [i] AS list, DATE '2026-02-28' AS day, i % 2 = 0 AS on, 0.1::DOUBLE AS ratio
      FROM range(${ROWS}) t(i)) TO ${literal(join(place.filesRoot, 'rows.parquet'))} (FORMAT parquet)`,
  );
  duck.close();
  await Bun.write(join(place.filesRoot, 'broken.parquet'), 'this is no Parquet file');
  return { ...place, good: { path: 'rows.parquet' }, bad: { 'no Parquet': { path: 'broken.parquet' } } };
}

function fileDestination(settings: { format: string; gzip?: boolean }, under = 'out') {
  return async (): Promise<Place> => {
    const place = await folderPlace();
    await Bun.write(join(place.filesRoot, 'a-file'), 'in the way');
    const bad = { 'a file in the way': { path: 'a-file' }, 'outside the root': { path: 'out/../../x' } };
    const good = under === 'out' ? { path: under, ...settings } : {};
    const readTable: Place['readTable'] = async (table, columns) => {
      const ending = settings.gzip ? `${settings.format}.gz` : settings.format;
      const folder = tablePath(under, { schema: null, table });
      const names = await readdir(join(place.filesRoot, folder)).catch(() => []);
      if (!names.some((name) => !name.startsWith('.'))) return null;
      const context = contextOf(fileSource, place, { settings: { path: `${folder}/*.${ending}` } });
      return readRows(
        fileSource,
        context,
        columns.map(({ name }) => name),
      );
    };
    return { ...place, good, bad: under === 'out' ? bad : { 'told to refuse': { check: 'throws' } }, readTable };
  };
}

async function postgresPlace() {
  const database = await createPlainDatabase();
  const url = new URL(database.url);
  const good = {
    host: url.hostname,
    port: Number(url.port),
    database: url.pathname.slice(1),
    username: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    ssl_mode: 'disable',
  };
  const sql = new SQL(database.url, { max: 1 });
  const leftOpen = async () => {
    const [row] = await sql`select count(*)::int as n from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`;
    return row.n as number;
  };
  const close = async () => {
    await sql.close();
    await database.drop();
  };
  const bad = {
    'wrong password': { ...good, password: 'wrong' },
    'no such database': { ...good, database: 'no_such_database' },
    'nobody listens': { ...good, port: 1 },
  };
  const filesRoot = await mkdtemp(join(tmpdir(), 'data-pipelines-files-'));
  return { filesRoot, good, bad, sql, leftOpen, close };
}

async function postgresSource(): Promise<Place> {
  const { sql, ...place } = await postgresPlace();
  await sql.unsafe(`create table many (id bigint primary key, name text, amount numeric(30, 5), at timestamptz not null,
    day date, data jsonb, bytes bytea, list int[], ratio float8, key uuid, on_off boolean)`);
  await sql.unsafe(`insert into many select i, nullif('Zoë ☃ ' || i, 'Zoë ☃ 7'), i + 0.12345,
    timestamptz '2026-01-01' + i * interval '1 second', date '2026-01-01' + (i % 300)::int, jsonb_build_object('i', i), '\\xdeadbeef',
    array[i, 2], i / 3.0, gen_random_uuid(), i % 2 = 0 from generate_series(1, ${WIDE_ROWS}) i`);
  return place;
}

async function postgresDestination(): Promise<Place> {
  const { sql, ...place } = await postgresPlace();
  const readTable: Place['readTable'] = async (table, columns) => {
    const [found] = await sql`select to_regclass(${`public."${table}"`}) is not null as there`;
    if (!found.there) return null;
    const list = columns.map(({ name }) => `"${name}"::text`).join(', ');
    return (await sql.unsafe(`select ${list} from public."${table}"`).values()) as Cell[][];
  };
  return { ...place, readTable };
}

async function made(good: Record<string, unknown>, bad: Place['bad']): Promise<Place> {
  const place = await folderPlace();
  return { ...place, good, bad };
}

async function slackPlace(): Promise<Place> {
  const { api_url, stop } = startSlackServer();
  const bad = {
    'a token that is refused': { bot_token: 'xoxb-another', api_url },
    'nobody listens': { bot_token: SLACK_TOKEN, api_url: 'http://127.0.0.1:1/api/' },
  };
  const place = await made({ bot_token: SLACK_TOKEN, api_url }, bad);
  return { ...place, close: () => Promise.all([place.close(), stop()]).then(() => {}) };
}

/** Every second event has the type of the second stream. */
async function webhookPlace(): Promise<Place> {
  const events = Array.from({ length: ROWS }, (_, at) => ({
    position: String(at + 1),
    id: `evt_${at}`,
    type: at % 2 ? 'paid' : null,
    received_at: '2026-11-21 10:00:00.123+00',
    headers: '{}',
    body: `{"id":"evt_${at}"}`,
    bytes: 100,
  }));
  const standing = { last_position: String(ROWS), released_position: '0', types: ['paid'], stored_events: ROWS };
  const inbox: Inbox = {
    standing: async () => standing,
    read: async ({ after, up_to, type }) =>
      events
        .slice(Number(after), Number(up_to))
        .filter((one) => type === undefined || one.type === type)
        .slice(0, 5000),
  };
  const place = await made(
    { signature: 'standard_webhooks', secret: 'whsec_c2VjcmV0', streams_by_type: true },
    { 'a secret that is not base64': { signature: 'standard_webhooks', secret: 'whsec_!' } },
  );
  return { ...place, inbox };
}

/** By type and name; several if a connector has several variants. */
export const FIXTURES: Record<string, Record<string, () => Promise<Place>>> = {
  'source postgres': { tables: postgresSource },
  'destination postgres': { tables: postgresDestination },
  'source mysql': mariaDbMissing ? {} : { tables: mysqlSource },
  'destination mysql': mariaDbMissing ? {} : { tables: mysqlDestination },
  'source sqlite': { tables: sqliteSourcePlace },
  'source duckdb': { tables: duckDbSourcePlace },
  'destination duckdb': { tables: duckDbDestinationPlace },
  'source file': {
    csv: csvSource,
    jsonl: jsonlSource,
    'fixed width': fixedWidthSource,
    xml: xmlSource,
    parquet: parquetSource,
    'over HTTP': httpSource,
    'in S3': s3Source,
    'Parquet in S3': s3ParquetSource,
    ...(!sshdMissing && { 'over SFTP': sftpSource }),
    ...(!ftpdMissing && { 'over FTPS': ftpSource }),
  },
  'destination file': {
    csv: fileDestination({ format: 'csv' }),
    'jsonl with gzip': fileDestination({ format: 'jsonl', gzip: true }),
    parquet: fileDestination({ format: 'parquet' }),
    'csv in S3': s3Destination({ format: 'csv' }),
    'jsonl with gzip in S3': s3Destination({ format: 'jsonl', gzip: true }),
    'parquet in S3': s3Destination({ format: 'parquet' }),
    ...(!sshdMissing && {
      'csv with gzip over SFTP': sftpDestination({ format: 'csv', gzip: true }),
      'parquet over SFTP': sftpDestination({ format: 'parquet' }),
    }),
    'csv in Google Cloud': gcsDestination,
  },
  'source http_api': HTTP_API_FIXTURES,
  'source airbyte_manifest': MANIFEST_FIXTURES,
  'destination http': HTTP_FIXTURES,
  'source webhook': { events: webhookPlace },
  'source demo': { rows: () => made({ rows: 20_000 }, { 'a start after the end': { start_date: '2030-01-01' } }) },
  'destination slack': { channels: slackPlace },
  'source sample': { rows: () => made({ rows: 100 }, { 'told to refuse': { check: 'throws' } }) },
  'destination sample': { rows: fileDestination({ format: 'jsonl' }, 'sample') },
};
