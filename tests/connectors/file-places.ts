import { readdir } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import type { TargetColumn } from '../../server/connectors/contract/connector.ts';
import { literal, openDuckDb } from '../../server/connectors/kits/duckdb/instance.ts';
import { fileSource } from '../../server/connectors/file/source.ts';
import { tablePath } from '../../server/connectors/kits/files/stores/table-paths.ts';
import { startHttpFiles } from '../support/http-files.ts';
import { startGcs } from '../support/gcs.ts';
import { startS3 } from '../support/s3.ts';
import { openFtpd } from '../support/ftpd.ts';
import { openSshd } from '../support/sshd.ts';
import { generateSshKey } from '../../server/platform/ssh-keys.ts';
import { readRows, ROWS } from './reading.ts';
import { contextOf, folderPlace, type Place } from './places.ts';

const csv = (from: number, to: number) =>
  ['id,name,amount', ...Array.from({ length: to - from }, (_, at) => `${from + at},"Zoë ☃",${at}.50`), ''].join('\n');

/** The bytes of a Parquet file with several types. */
export async function parquetBytes(rows: number): Promise<Uint8Array<ArrayBuffer>> {
  const place = await folderPlace();
  const path = `${place.filesRoot}/rows.parquet`;
  const duck = await openDuckDb();
  await duck.connection.run(
    `COPY (SELECT i AS id, 'Zoë ' || i AS name, (i || '.25')::DECIMAL(20, 2) AS amount FROM range(${rows}) t(i))
      TO ${literal(path)} (FORMAT parquet, ROW_GROUP_SIZE 2048)`,
  );
  duck.close();
  const bytes = await Bun.file(path).bytes();
  await place.close();
  return bytes;
}

export async function s3Source(): Promise<Place> {
  const [place, s3] = [await folderPlace(), await startS3()];
  await s3.put('in/a b+c.csv', csv(0, ROWS));
  await s3.put('in/b.csv.gz', gzipSync(csv(ROWS, ROWS + 100)));
  await s3.put('in/_pipeline_state/x.csv', 'not,data\n');
  const good = { ...s3.settings, path: 'in/**/*.csv*', include_file_columns: true, primary_key: ['id'] };
  const bad = {
    'no such bucket': { ...good, bucket: 'none' },
    'no such key': { ...good, path: 'in/none.csv' },
    'nobody listens': { ...good, endpoint: 'http://127.0.0.1:1' },
  };
  return { ...place, good, bad, close: () => Promise.all([place.close(), s3.close()]).then(() => {}) };
}

export async function s3ParquetSource(): Promise<Place> {
  const [place, s3] = [await folderPlace(), await startS3()];
  await s3.put('rows.parquet', await parquetBytes(ROWS));
  await s3.put('broken.parquet', 'this is no Parquet file');
  const good = { ...s3.settings, path: 'rows.parquet' };
  const bad = { 'no Parquet': { ...good, path: 'broken.parquet' } };
  return { ...place, good, bad, close: () => Promise.all([place.close(), s3.close()]).then(() => {}) };
}

export async function httpSource(): Promise<Place> {
  const [place, server] = [await folderPlace(), await startHttpFiles()];
  server.put('a.csv', csv(0, ROWS));
  server.put('b.csv.gz', gzipSync(csv(ROWS, ROWS + 100)));
  const good = { location: 'http', urls: [server.url('a.csv'), server.url('b.csv.gz')] };
  const bad = {
    'no such file': { ...good, urls: [server.url('none.csv')] },
    'nobody listens': { ...good, urls: ['http://127.0.0.1:1/a.csv'] },
  };
  return { ...place, good, bad, close: () => Promise.all([place.close(), server.close()]).then(() => {}) };
}

/** Folders over SFTP. The only user that can log in sees the whole machine, so paths are absolute. */
export async function sftpSource(): Promise<Place> {
  const [place, { server, close }] = [await folderPlace(), await openSshd(['Subsystem sftp internal-sftp'])];
  await Bun.write(`${place.filesRoot}/in/a b.csv`, csv(0, ROWS));
  await Bun.write(`${place.filesRoot}/in/deep/b.csv.gz`, gzipSync(csv(ROWS, ROWS + 100)));
  const { private_key, public_key } = generateSshKey('test');
  server.authorize(public_key);
  const { host, port, username } = server;
  const good = { location: 'sftp', host, port, username, private_key, path: `${place.filesRoot}/in/**/*.csv*` };
  const bad = {
    'no such file': { ...good, path: `${place.filesRoot}/in/none.csv` },
    'another key': { ...good, private_key: generateSshKey('test').private_key },
    'nobody listens': { ...good, port: 1 },
  };
  const leftOpen = async () => server.logins();
  return { ...place, good, bad, leftOpen, close: () => Promise.all([place.close(), close()]).then(() => {}) };
}

/** Folders over FTP with explicit TLS. */
export async function ftpSource(): Promise<Place> {
  const [place, { server, close }] = [await folderPlace(), await openFtpd({ tls: 'explicit' })];
  await Bun.write(`${server.home}/in/a b.csv`, csv(0, ROWS));
  await Bun.write(`${server.home}/in/deep/b.csv.gz`, gzipSync(csv(ROWS, ROWS + 100)));
  const { host, port, username, password, certificate: ca_certificate } = server;
  const good = { location: 'ftp', host, port, username, password, ca_certificate, path: 'in/**/*.csv*' };
  const bad = {
    'no such file': { ...good, path: 'in/none.csv' },
    'another password': { ...good, password: 'wrong' },
    'an unknown authority': { ...good, ca_certificate: undefined },
    'nobody listens': { ...good, port: 1 },
  };
  const leftOpen = async () => server.logins();
  return { ...place, good, bad, leftOpen, close: () => Promise.all([place.close(), close()]).then(() => {}) };
}

export function s3Destination(settings: { format: string; gzip?: boolean }) {
  return async (): Promise<Place> => {
    const [place, s3] = [await folderPlace(), await startS3()];
    const good = { ...s3.settings, path: 'out', ...settings };
    const bad = {
      'no such bucket': { ...good, bucket: 'none' },
      'nobody listens': { ...good, endpoint: 'http://127.0.0.1:1' },
    };
    const readTable = async (table: string, columns: TargetColumn[]) => {
      const folder = tablePath('out', { schema: null, table });
      if ((await s3.keys(`${folder}/`)).length === 0) return null;
      const context = contextOf(fileSource, place, { settings: { ...s3.settings, path: `${folder}/*` } });
      const names = columns.map(({ name }) => name);
      return readRows(fileSource, context, names);
    };
    return { ...place, good, bad, readTable, close: () => Promise.all([place.close(), s3.close()]).then(() => {}) };
  };
}

/** Folders over SFTP. */
export function sftpDestination(settings: { format: string; gzip?: boolean }) {
  return async (): Promise<Place> => {
    const [place, { server, close }] = [await folderPlace(), await openSshd(['Subsystem sftp internal-sftp'])];
    await Bun.write(`${place.filesRoot}/a-file`, 'in the way');
    const { private_key, public_key } = generateSshKey('test');
    server.authorize(public_key);
    const { host, port, username } = server;
    const path = `${place.filesRoot}/out`;
    const good = { location: 'sftp', host, port, username, private_key, path, ...settings };
    const bad = {
      'a file in the way': { ...good, path: `${place.filesRoot}/a-file` },
      'another key': { ...good, private_key: generateSshKey('test').private_key },
      'nobody listens': { ...good, port: 1 },
    };
    const readTable = async (table: string, columns: TargetColumn[]) => {
      const folder = tablePath('out', { schema: null, table });
      const names = await readdir(`${place.filesRoot}/${folder}`).catch(() => []);
      if (names.length === 0) return null;
      const context = contextOf(fileSource, place, { settings: { path: `${folder}/*` } });
      return readRows(
        fileSource,
        context,
        columns.map(({ name }) => name),
      );
    };
    const leftOpen = async () => server.logins();
    return {
      ...place,
      good,
      bad,
      readTable,
      leftOpen,
      close: () => Promise.all([place.close(), close()]).then(() => {}),
    };
  };
}

export async function gcsDestination(): Promise<Place> {
  const [place, gcs] = [await folderPlace(), await startGcs()];
  const good = { ...gcs.settings, path: 'out', format: 'csv' };
  const bad = {
    'no such bucket': { ...good, bucket: 'none' },
    'nobody listens': { ...good, endpoint: 'http://127.0.0.1:1' },
  };
  const readTable = async (table: string, columns: TargetColumn[]) => {
    const folder = tablePath('out', { schema: null, table });
    if ((await gcs.keys(`${folder}/`)).length === 0) return null;
    const context = contextOf(fileSource, place, { settings: { ...gcs.settings, path: `${folder}/*` } });
    return readRows(
      fileSource,
      context,
      columns.map(({ name }) => name),
    );
  };
  return { ...place, good, bad, readTable, close: () => Promise.all([place.close(), gcs.close()]).then(() => {}) };
}
