import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'bun:test';
import type { ConnectorContext } from '../../server/connectors/contract/connector.ts';
import { ConfigurationError, FencedError, RetryableError } from '../../server/connectors/contract/errors.ts';
import { parseParameters } from '../../server/connectors/contract/parameters.ts';
import { fileDestination } from '../../server/connectors/file/destination.ts';
import { fileSource } from '../../server/connectors/file/source.ts';
import { generateSshKey } from '../../server/platform/ssh-keys.ts';
import { limitHangs } from '../support/hangs.ts';
import { relayRequests } from '../support/sftp-requests.ts';
import { sshdMissing, startSshd } from '../support/sshd.ts';
import { until } from '../support/until.ts';
import type { SourceTestContext } from './file-support.ts';
import { s3Target } from './s3-target.ts';
import { type AtRequest, batch, type CommitPlace, type Fate, load, readIds, testCommits } from './table-commits.ts';
import { errorOf } from './unreachable.ts';
import { contextOf } from './places.ts';

limitHangs();

const home = mkdtempSync('/tmp/data-pipelines-sftp-out-');
afterAll(() => rmSync(home, { recursive: true, force: true }));
// The kernel ends larger files, as it does on a full disk.
const small_disk = join(home, 'small-disk.sh');
writeFileSync(small_disk, "#!/bin/sh\ntrap '' XFSZ\nulimit -f 64\nexec /usr/lib/openssh/sftp-server\n", {
  mode: 0o755,
});
const [sshd, plain, reader, keeper, small] = [
  await startSshd(['Subsystem sftp internal-sftp']),
  // Without what only OpenSSH offers.
  await startSshd(['Subsystem sftp internal-sftp -P posix-rename,fsync,hardlink,statvfs']),
  await startSshd(['Subsystem sftp internal-sftp -R']),
  await startSshd(['Subsystem sftp internal-sftp -P remove']),
  await startSshd([`Subsystem sftp ${small_disk}`]),
];
const { private_key, public_key } = generateSshKey('test');
if (!sshdMissing) for (const server of [sshd, plain, reader, keeper, small]) server.authorize(public_key);

const settingsOf = ({ host, port, username }: typeof sshd) => ({ location: 'sftp', host, port, username, private_key });
let places = 0;

/** Each request of SFTP is a request. */
function sftpPlace(server = sshd, more: object = {}): CommitPlace & { folder: string } {
  const folder = join(home, String((places += 1)));
  const settings = { ...settingsOf(server), path: folder, format: 'jsonl', ...more };
  const ends = new AbortController();
  return {
    folder,
    settings,
    async open(target, at) {
      const dead = new AbortController();
      const signal = AbortSignal.any([dead.signal, ends.signal]);
      const ctx = contextOf(fileDestination, { filesRoot: home }, { settings, signal });
      const watched = {
        ...ctx,
        connect: at ? relayed(ctx.connect, at, () => dead.abort(new Error('dead'))) : ctx.connect,
      };
      return fileDestination.open(watched as ConnectorContext<never>, s3Target({ stream_run_id: 'run', ...target }));
    },
    rows: () => {
      const reading = { ...settingsOf(sshd), path: `${folder}/t/*` };
      return readIds(contextOf(fileSource, { filesRoot: home }, { settings: reading }) as SourceTestContext);
    },
    async leftOver() {
      const names = (below: string) => readdirSync(join(folder, below));
      const [, ...states] = names('_pipeline_state').toSorted((a, b) => Number(a[0] === '.') - Number(b[0] === '.'));
      return [...states, ...names('t').filter((name) => name.startsWith('.'))];
    },
    cleanUp: () => ends.abort(new Error('the test is over')),
  };
}

function relayed(
  connect: ConnectorContext<unknown>['connect'],
  { before, after }: AtRequest,
  die: () => void,
): ConnectorContext<unknown>['connect'] {
  let number = 0;
  const never = new Promise<never>(() => {});
  return async (target) => {
    const socket = await connect(target);
    const ends = (fate: Fate | undefined) => {
      if (fate === 'dies') die();
      if (fate === 'lost') socket.destroy();
      return fate === 'dies' || fate === 'lost';
    };
    relayRequests(socket, async (send) => {
      const own = (number += 1);
      if (ends(await before?.(own))) return never;
      const answer = await send();
      return ends(await after?.(own)) ? never : answer;
    });
    return socket;
  };
}

describe.skipIf(sshdMissing !== null)('a destination over SFTP', () => {
  testCommits((more) => sftpPlace(sshd, more), { least: 40, tried: 8 });

  test('without the extensions of OpenSSH, it replaces and appends, too', async () => {
    const place = sftpPlace(plain);
    await load(place.open({ fence: 1 }));
    expect(await place.rows()).toEqual(['1', '2']);
    const writer = await place.open({ fence: 2, mode: 'overwrite', stream_run_id: 'next' });
    await writer.write(batch(3));
    await writer.finish(null);
    expect(await place.rows()).toEqual(['3']);
    expect(await place.leftOver()).toEqual([]);
    const late = await place.open({ fence: 3, stream_run_id: 'late' });
    await late.write(batch(4));
    await place.open({ fence: 4, stream_run_id: 'later' });
    await expect(late.finish(null)).rejects.toBeInstanceOf(FencedError);
    place.cleanUp();
  });

  test('many rows arrive whole, and no reader sees a file before it is', async () => {
    const place = sftpPlace(sshd, { format: 'csv', gzip: true });
    const writer = await place.open({ fence: 1 });
    const ids = Array.from({ length: 300_000 }, (_, id) => id);
    for (let from = 0; from < ids.length; from += 50_000) {
      await writer.write(batch(...ids.slice(from, from + 50_000)));
      expect(readdirSync(join(place.folder, 't'))).toEqual([]);
    }
    await writer.finish(null);
    const rows = await place.rows();
    expect([rows.length, new Set(rows).size]).toEqual([ids.length, ids.length]);
    place.cleanUp();
    await until(() => sshd.logins() === 0);
  });

  test('the connection test names the step that fails, and leaves nothing', async () => {
    const check = async (server: typeof sshd, more: object = {}) => {
      const place = sftpPlace(server, more);
      const ctx = contextOf(fileDestination, { filesRoot: home }, { settings: place.settings });
      const { checks } = await fileDestination.check(ctx as never);
      return { place, checks: checks.map(({ title, status, message }) => ({ title, status, message })) };
    };
    const all = ['Login', 'Write', 'Rename', 'Delete'];
    const good = await check(sshd);
    expect(good.checks.map(({ title, status }) => [title, status])).toEqual(all.map((title) => [title, 'passed']));
    expect(good.checks[0]?.message).toBe(`Host key ${sshd.fingerprint}`);
    expect(readdirSync(join(good.place.folder, '_pipeline_state'))).toEqual([]);
    for (const [server, step, message] of [
      [reader, 'Write', 'no permission to write'],
      [keeper, 'Delete', 'no permission to write'],
    ] as const) {
      const failed = (await check(server)).checks.find(({ status }) => status === 'failed');
      expect(failed).toMatchObject({ title: step, message: expect.stringContaining(message) });
    }
  });

  test('a file in the way, no rights, a full disk and a missing folder have errors of their own', async () => {
    const path = join(home, 'in-the-way');
    writeFileSync(path, 'a file');
    const opening = (server: typeof sshd, more: object = {}) => errorOf(sftpPlace(server, more).open({ fence: 1 }));
    for (const [error, code] of [
      [await opening(sshd, { path }), 'file_path_invalid'],
      [await opening(sshd, { path: `${home}/../x` }), 'path_invalid'],
      [await opening(reader), 'file_forbidden'],
    ] as const) {
      expect(error).toBeInstanceOf(ConfigurationError);
      expect(error.code).toBe(code);
    }
    const full = sftpPlace(small);
    const writer = await full.open({ fence: 1 });
    await writer.write(batch(1));
    await writer.checkpoint({ cursor: '1' });
    const ids = Array.from({ length: 50_000 }, (_, at) => at + 2);
    const error = await errorOf(writer.write(batch(...ids)).then(() => writer.finish(null)));
    expect(error).toBeInstanceOf(RetryableError);
    expect(error).toMatchObject({ code: 'file_error', message: expect.stringContaining('Check free space') });
    await writer.abort();
    expect(await full.rows()).toEqual(['1']);
    expect(await full.leftOver()).toEqual([]);
    const gone = sftpPlace();
    const late = await gone.open({ fence: 1 });
    await late.write(batch(1));
    rmSync(gone.folder, { recursive: true });
    expect(await errorOf(late.finish(null))).toMatchObject({ code: 'file_not_found' });
    await late.abort();
    for (const place of [full, gone]) place.cleanUp();
  });

  test('a folder of a table that is removed before its file has its name loses no row', async () => {
    const place = sftpPlace();
    const writer = await place.open({ fence: 1 });
    await writer.write(batch(1));
    rmSync(join(place.folder, 't'), { recursive: true });
    expect(await errorOf(writer.finish({ cursor: '1' }))).toMatchObject({ code: 'file_not_found' });
    await writer.abort();
    await load(place.open({ fence: 2 }));
    expect(await place.rows()).toEqual(['1', '2']);
    place.cleanUp();
  });

  test('the settings need a host, a user, and a password or a key', () => {
    const parsed = parseParameters(fileDestination, { location: 'sftp' });
    const missing = 'problems' in parsed ? parsed.problems.map(({ parameter }) => parameter) : [];
    expect(missing).toEqual(['host', 'username', 'password']);
  });
});
