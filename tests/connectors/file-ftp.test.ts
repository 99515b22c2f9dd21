import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'bun:test';
import { directConnect } from '../../server/connector-runtime/sockets.ts';
import type { ConnectTarget } from '../../server/connectors/contract/connect.ts';
import {
  AuthenticationError,
  ConfigurationError,
  RetryableError,
  TimeoutError,
} from '../../server/connectors/contract/errors.ts';
import { fileSource } from '../../server/connectors/file/source.ts';
import { FtpSession } from '../../server/connectors/kits/files/stores/ftp/session.ts';
import { type Ftpd, ftpdMissing, startFtpd } from '../support/ftpd.ts';
import { until } from '../support/until.ts';
import { parquetBytes } from './file-places.ts';
import { readFiles, type SourceTestContext } from './file-support.ts';
import { requestOf } from './reading.ts';
import { errorOf, withListener } from './unreachable.ts';
import { contextOf } from './places.ts';

const explicit = await startFtpd({ tls: 'explicit' });
const implicit = await startFtpd({ tls: 'implicit' });
/** A server of the old kind: listings as of `ls`, no EPSV, and another address for data, as behind a router. */
const plain = await startFtpd({
  settings: ['FactsAdvertise off', '<Limit EPSV>', 'DenyAll', '</Limit>', 'MasqueradeAddress 169.254.169.254'],
});
const folder = mkdtempSync('/tmp/data-pipelines-ftp-');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const encryptionOf = (server: Ftpd) =>
  server === explicit ? 'explicit' : server === implicit ? 'implicit' : ('none' as const);

function settingsOf(server: Ftpd, settings: object): Record<string, unknown> {
  const { host, port, username, password, certificate } = server;
  const encryption = { ftp_encryption: encryptionOf(server), ca_certificate: certificate || undefined };
  return { location: 'ftp', host, port, username, password, ...encryption, ...settings };
}

const contextFor = (server: Ftpd, settings: object, signal?: AbortSignal) =>
  contextOf(fileSource, { filesRoot: folder }, { settings: settingsOf(server, settings), signal }) as SourceTestContext;

/** @param seconds its time of modification */
function put(server: Ftpd, name: string, content: string | Uint8Array, seconds = 1_700_000_000): void {
  const path = join(server.home, name);
  mkdirSync(dirname(path), { recursive: true });
  chmodSync(dirname(path), 0o755);
  writeFileSync(path, content);
  utimesSync(path, seconds, seconds);
}

/** More than the buffers of a connection hold. */
const WIDE_ROWS = 40_000;
const wide = (rows: number) =>
  `id,pad\n${Array.from({ length: rows }, (_, id) => `${id},${'x'.repeat(1000)}\n`).join('')}`;
const idOf = (row: (string | null)[] | undefined) => row?.[0];

describe.skipIf(ftpdMissing !== null)('files over FTP', () => {
  test.each([
    ['explicit TLS', () => explicit, /^Encrypted, TLSv1\.[23]$/],
    ['implicit TLS', () => implicit, /^Encrypted, TLSv1\.[23]$/],
    ['no encryption, by an old server', () => plain, /^Not encrypted$/],
  ] as const)('%s: the test logs in, and files are found and read', async (_, serverOf, login) => {
    const server = serverOf();
    put(server, 'in/a b.csv', `id\n${Array.from({ length: 60_000 }, (__, id) => `${id}\n`).join('')}`);
    put(server, 'in/deep/ü.csv.gz', gzipSync('id\n60000\n'));
    put(server, 'in/deep/other.txt', 'no CSV');
    put(server, 'in/rows.parquet', await parquetBytes(5000));
    const ctx = contextFor(server, { path: 'in/**/*.csv*' });
    const { checks } = await fileSource.check(ctx);
    expect(checks.map(({ title }) => title)).toEqual(['Login', 'Files', 'Format']);
    expect(checks[0]?.message).toMatch(login);
    expect(checks[1]?.message).toBe('2 files');
    const { rows } = await readFiles(ctx);
    expect([rows.length, idOf(rows[0]), idOf(rows.at(-1))]).toEqual([60_001, '0', '60000']);
    expect((await readFiles(contextFor(server, { path: 'in/rows.parquet' }))).rows).toHaveLength(5000);
    const absolute = await readFiles(contextFor(server, { path: `${server.home}/in/deep/*.gz` }));
    expect(absolute.rows).toEqual([['60000']]);
  });

  test('data always comes from the host of the settings, and from no port that is not allowed', async () => {
    put(plain, 'one.csv', 'id\n1\n');
    const ctx = contextFor(plain, { path: 'one.csv' });
    const targets: ConnectTarget[] = [];
    const connect: typeof ctx.connect = (target) => {
      targets.push(target);
      return ctx.connect(target);
    };
    expect((await readFiles({ ...ctx, connect })).rows).toEqual([['1']]);
    expect(plain.log()).toMatch(/PASV -> 227 .*169,254,169,254/);
    expect([...new Set(targets.map(({ host }) => host))]).toEqual(['127.0.0.1']);
    expect(new Set(targets.map(({ port }) => port)).size).toBeGreaterThan(1);
    const guarded = directConnect({ allow: [`127.0.0.1:${plain.port}`] }, ctx.signal);
    const refused = await errorOf(readFiles({ ...contextFor(plain, { path: 'one.csv' }), connect: guarded }));
    expect(refused).toBeInstanceOf(ConfigurationError);
    expect(refused.code).toBe('address_not_allowed');
  });

  test('every failure has its own class and code', async () => {
    for (const server of [explicit, implicit, plain]) put(server, 'one.csv', 'id\n1\n');
    put(explicit, 'secret.csv', 'id\n1\n');
    chmodSync(join(explicit.home, 'secret.csv'), 0);
    const cases: [Ftpd, object, new (...given: never[]) => Error, string][] = [
      [explicit, { host: 'nowhere.invalid' }, ConfigurationError, 'host_not_found'],
      [explicit, { host: '169.254.169.254' }, ConfigurationError, 'address_not_allowed'],
      [explicit, { port: 1 }, RetryableError, 'connection_failed'],
      [explicit, { username: 'nobody-of-that-name' }, AuthenticationError, 'ftp_login_refused'],
      [explicit, { password: 'wrong' }, AuthenticationError, 'ftp_login_refused'],
      [explicit, { password: 'line\r\nDELE one.csv' }, AuthenticationError, 'ftp_login_invalid'],
      [explicit, { username: '' }, AuthenticationError, 'ftp_login_refused'],
      [explicit, { ca_certificate: undefined }, ConfigurationError, 'certificate_invalid'],
      [explicit, { ca_certificate: implicit.certificate }, ConfigurationError, 'certificate_invalid'],
      [implicit, { ca_certificate: undefined }, ConfigurationError, 'certificate_invalid'],
      [explicit, { host: 'localhost' }, ConfigurationError, 'certificate_invalid'],
      [explicit, { ftp_encryption: 'none' }, ConfigurationError, 'tls_required'],
      [plain, { ftp_encryption: 'explicit' }, ConfigurationError, 'tls_not_supported'],
      [plain, { ftp_encryption: 'implicit' }, ConfigurationError, 'tls_not_supported'],
      [explicit, { path: 'none/*.csv' }, ConfigurationError, 'no_files'],
      [plain, { path: 'none/*.csv' }, ConfigurationError, 'no_files'],
      [explicit, { path: '../one.csv' }, ConfigurationError, 'path_invalid'],
      [explicit, { path: 'a\r\nDELE one.csv/x' }, ConfigurationError, 'path_invalid'],
      [explicit, { path: 'secret.csv' }, ConfigurationError, 'file_forbidden'],
    ];
    for (const [server, settings, kind, code] of cases) {
      const error = await errorOf(readFiles(contextFor(server, { path: 'one.csv', ...settings })));
      expect(`${error.code}: ${error.message}`).toStartWith(`${code}: `);
      expect(error).toBeInstanceOf(kind);
      expect(error.message).not.toContain(explicit.password);
      expect(error.message).not.toMatch(/\w\.\./);
    }
    const unchecked = { path: 'one.csv', ca_certificate: undefined, check_certificate: false };
    expect((await readFiles(contextFor(explicit, unchecked))).rows).toEqual([['1']]);
    for (const ftp_encryption of ['explicit', 'implicit', 'none']) {
      const silent = await withListener(
        () => {},
        (port) =>
          errorOf(fileSource.check(contextFor(plain, { path: 'x', port, ftp_encryption, timeout_seconds: 0.3 }))),
      );
      expect(silent).toBeInstanceOf(TimeoutError);
    }
  });

  test('links to files and folders are followed, and one that leads nowhere is left out', async () => {
    for (const server of [explicit, plain]) {
      put(server, 'links/in/a.csv', 'id\n1\n');
      put(server, 'real/b.csv', 'id\n22\n');
      symlinkSync(join(server.home, 'real/b.csv'), join(server.home, 'links/in/b.csv'));
      symlinkSync(join(server.home, 'real'), join(server.home, 'links/real'));
      symlinkSync(join(server.home, 'none'), join(server.home, 'links/in/c.csv'));
      const { rows } = await readFiles(contextFor(server, { path: 'links/*/*.csv' }));
      expect(rows).toEqual([['1'], ['22'], ['22']]);
    }
  });

  test('an incremental read takes the files that are new or changed, over one login', async () => {
    for (const server of [explicit, plain]) {
      await until(() => server.logins() === 0);
      put(server, 'inc/1.csv', 'id\n1\n', 1_700_000_000);
      put(server, 'inc/2.csv', 'id\n2\n', 1_700_000_001);
      const ctx = contextFor(server, { path: 'inc/*.csv', include_file_columns: true });
      const before = await readFiles(ctx, { sync_mode: 'incremental' });
      expect(before.rows.map(([id, name, at]) => [id, name, at])).toEqual([
        ['1', 'inc/1.csv', '2023-11-14 22:13:20.000000+00'],
        ['2', 'inc/2.csv', '2023-11-14 22:13:21.000000+00'],
      ]);
      expect(server.logins()).toBeLessThanOrEqual(1);
      put(server, 'inc/3.csv', 'id\n3\n', 1_700_000_001);
      put(server, 'inc/2.csv', 'id\n22\n', 1_700_000_002);
      const after = await readFiles(ctx, { sync_mode: 'incremental', state: before.state });
      expect(after.rows.map(idOf)).toEqual(['3', '22']);
      await until(() => server.logins() === 0);
    }
  });

  test('a lost connection is resumed where it broke off, while the file is the same', async () => {
    put(explicit, 'wide.csv', wide(WIDE_ROWS));
    const ctx = contextFor(explicit, { path: 'wide.csv' });
    const [stream] = await fileSource.discover(ctx);
    const ids: (string | null | undefined)[] = [];
    let lost = false;
    for await (const { rows } of fileSource.read(ctx, requestOf(stream!))) {
      ids.push(...rows.map(idOf));
      if (rows.length > 0 && !lost) await explicit.restart();
      lost ||= rows.length > 0;
    }
    expect(explicit.log()).toMatch(/REST [1-9]\d* -> 350/);
    expect(ids.length).toBe(WIDE_ROWS);
    expect(ids.findIndex((id, at) => id !== String(at))).toBe(-1);
  });

  test('a file that is being written is not read, and a server that is gone is retryable', async () => {
    for (const [disturb, code] of [
      [async () => put(explicit, 'wide.csv', wide(WIDE_ROWS - 1)), /file_cut_off|file_changed/],
      [async () => rmSync(join(explicit.home, 'wide.csv')), /file_changed/],
      [() => explicit.kill(), /connection_failed/],
    ] as const) {
      put(explicit, 'wide.csv', wide(WIDE_ROWS));
      const ctx = contextFor(explicit, { path: 'wide.csv' });
      const [stream] = await fileSource.discover(ctx);
      const work = (async () => {
        let disturbed = false;
        for await (const { rows } of fileSource.read(ctx, requestOf(stream!))) {
          if (rows.length > 0 && !disturbed) await disturb();
          disturbed ||= rows.length > 0;
        }
      })();
      const error = await errorOf(work);
      expect(error).toBeInstanceOf(RetryableError);
      expect(error.code).toMatch(code);
    }
    await explicit.restart();
  });

  test('a stop ends the transfer and the login at once', async () => {
    put(explicit, 'wide.csv', wide(WIDE_ROWS));
    const controller = new AbortController();
    const ctx = contextFor(explicit, { path: 'wide.csv' }, controller.signal);
    const [stream] = await fileSource.discover(ctx);
    const work = (async () => {
      for await (const { rows } of fileSource.read(ctx, requestOf(stream!))) {
        if (rows.length > 0) controller.abort(new Error('stopped'));
      }
    })();
    expect((await errorOf(work)).message).toBe('stopped');
    await until(() => explicit.logins() === 0);
  });

  test('a stop ends a request to a server that stands still', async () => {
    const controller = new AbortController();
    const session = await FtpSession.open(contextFor(explicit, { path: 'one.csv' }, controller.signal));
    explicit.freeze();
    const listing = errorOf(session.list(''));
    controller.abort(new Error('stopped'));
    expect((await listing).message).toBe('stopped');
    expect(session.open).toBe(false);
    await explicit.restart();
  });
});
