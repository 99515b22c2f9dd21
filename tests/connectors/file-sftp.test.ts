import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'bun:test';
import {
  AuthenticationError,
  ConfigurationError,
  RetryableError,
  TimeoutError,
} from '../../server/connectors/contract/errors.ts';
import { fileSource } from '../../server/connectors/file/source.ts';
import { SftpSession } from '../../server/connectors/kits/files/stores/sftp/session.ts';
import { generateSshKey } from '../../server/platform/ssh-keys.ts';
import { sshdMissing, startSshd } from '../support/sshd.ts';
import { until } from '../support/until.ts';
import { readFiles, type SourceTestContext } from './file-support.ts';
import { requestOf } from './reading.ts';
import { errorOf, withListener } from './unreachable.ts';
import { contextOf } from './places.ts';

const [sshd, plain] = [await startSshd(['Subsystem sftp internal-sftp']), await startSshd()];
const folder = mkdtempSync('/tmp/data-pipelines-sftp-');
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const { private_key, public_key } = generateSshKey('test');
if (!sshdMissing) for (const server of [sshd, plain]) server.authorize(public_key);

const { host, port, username } = sshd;
const base = { location: 'sftp', host, port, username, private_key };
const contextFor = (settings: object) =>
  contextOf(fileSource, { filesRoot: folder }, { settings: { ...base, ...settings } }) as SourceTestContext;

/** @param seconds its time of modification */
function put(name: string, text: string, seconds = 1_700_000_000): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  utimesSync(path, seconds, seconds);
  return path;
}

const numbers = (rows: number) => `id\n${Array.from({ length: rows }, (_, id) => `${id}\n`).join('')}`;

describe.skipIf(sshdMissing !== null)('files over SFTP', () => {
  test('the test shows the host key, and no other one is accepted afterwards', async () => {
    const path = put('key.csv', 'id\n1\n');
    const { checks } = await fileSource.check(contextFor({ path }));
    expect(checks.map(({ title, message }) => [title, message])).toEqual([
      ['Login', `Host key ${sshd.fingerprint}`],
      ['Files', '1 file'],
      ['Format', '1 columns'],
    ]);
    const known = { path, host_key_fingerprint: sshd.fingerprint };
    expect((await readFiles(contextFor(known))).rows).toEqual([['1']]);
    const other = await errorOf(fileSource.check(contextFor({ ...known, port: plain.port })));
    expect(other).toBeInstanceOf(ConfigurationError);
    expect(other.code).toBe('ssh_host_key_changed');
    expect(other.message).toContain(plain.fingerprint);
  });

  test('every failure has its own class and code', async () => {
    const path = put('one.csv', 'id\n1\n');
    const silent = await withListener(
      () => {},
      (at) => errorOf(fileSource.check(contextFor({ path, port: at, timeout_seconds: 0.3 }))),
    );
    const cases: [object, new (...given: never[]) => Error, string][] = [
      [{ host: 'nowhere.invalid' }, ConfigurationError, 'host_not_found'],
      [{ host: '169.254.169.254' }, ConfigurationError, 'address_not_allowed'],
      [{ port: 1 }, RetryableError, 'connection_failed'],
      [{ username: 'nobody-of-that-name' }, AuthenticationError, 'ssh_login_refused'],
      [{ private_key: generateSshKey('x').private_key }, AuthenticationError, 'ssh_login_refused'],
      [{ private_key: 'no key' }, AuthenticationError, 'ssh_key_invalid'],
      [{ port: plain.port }, ConfigurationError, 'sftp_not_supported'],
      [{ path: join(folder, 'none', '*.csv') }, ConfigurationError, 'no_files'],
      [{ path: `${folder}/../x.csv` }, ConfigurationError, 'path_invalid'],
    ];
    for (const [settings, kind, code] of cases) {
      const error = await errorOf(readFiles(contextFor({ path, ...settings })));
      expect(error).toBeInstanceOf(kind);
      expect(error.code).toBe(code);
      expect(error.message).not.toContain(private_key);
    }
    expect(silent).toBeInstanceOf(TimeoutError);
  });

  test('a file that is being written is not read, and a lost connection is retryable', async () => {
    const path = put('big.csv', numbers(400_000));
    const streams = await fileSource.discover(contextFor({ path }));
    for (const [disturb, code] of [
      [() => put('big.csv', numbers(300_000)), /file_cut_off|file_changed/],
      [() => sshd.kill(), /connection_failed/],
    ] as const) {
      put('big.csv', numbers(400_000));
      const work = (async () => {
        let disturbed = false;
        for await (const { rows } of fileSource.read(contextFor({ path }), requestOf(streams[0]!))) {
          if (rows.length > 0 && !disturbed) await disturb();
          disturbed = true;
        }
      })();
      const error = await errorOf(work);
      expect(error).toBeInstanceOf(RetryableError);
      expect(error.code).toMatch(code);
      expect(error.message).toContain('big.csv');
    }
    await sshd.restart('same');
  });

  test('a request after the end of the connection fails at once', async () => {
    const path = put('late.csv', 'id\n1\n');
    const session = await SftpSession.open(contextFor({ path }));
    await sshd.kill();
    await until(() => !session.open);
    const error = await errorOf(session.stat(path));
    expect(error).toBeInstanceOf(RetryableError);
    expect(error.code).toBe('connection_failed');
    session.close();
    await sshd.restart('same');
  }, 10_000);

  test('an incremental read takes the files that are new or changed, over one login', async () => {
    const [first] = [put('in-1.csv', 'id\n1\n', 1_700_000_000), put('in-2.csv', 'id\n2\n', 1_700_000_001)];
    const ctx = contextFor({ path: first.replace('1.csv', '*.csv') });
    const before = await readFiles(ctx, { sync_mode: 'incremental' });
    expect(before.rows).toEqual([['1'], ['2']]);
    expect(sshd.logins()).toBeLessThanOrEqual(2);
    put('in-3.csv', 'id\n3\n', 1_700_000_001);
    put('in-2.csv', 'id\n22\n', 1_700_000_002);
    expect((await readFiles(ctx, { sync_mode: 'incremental', state: before.state })).rows).toEqual([['3'], ['22']]);
    await until(() => sshd.logins() === 0);
  });
});
