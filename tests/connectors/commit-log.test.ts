import { afterAll, expect, spyOn, test } from 'bun:test';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WriteTarget } from '../../server/connectors/contract/connector.ts';
import { FencedError } from '../../server/connectors/contract/errors.ts';
import { type DestinationContext, FileDestinationConfig } from '../../server/connectors/kits/files/settings/files.ts';
import { CommitLog } from '../../server/connectors/kits/files/stores/commit-log.ts';
import { localFolders } from '../../server/connectors/kits/files/stores/local-folder.ts';
import { FolderTable } from '../../server/connectors/kits/files/stores/folder-table.ts';
import type { CommitRecord } from '../../server/connectors/kits/files/stores/store.ts';
import { openTableWriter } from '../../server/connectors/kits/files/table-writer.ts';

const root = mkdtempSync(join(tmpdir(), 'data-pipelines-commit-log-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const recordOf = (fence: number, more: Partial<CommitRecord> = {}): CommitRecord => ({
  fence,
  stream_run_id: 'run',
  state: { cursor: String(fence) },
  state_version: fence,
  finished: false,
  counts: { rows_loaded: 0, rows_updated: 0, rows_deleted: 0, bytes_loaded: 0 },
  files: 0,
  publish: [],
  remove: [],
  ...more,
});

const openLog = (folder: string, key: string) => CommitLog.open(localFolders, { folder, key });

test('of two attempts that commit from the same point, one is rejected', async () => {
  const folder = mkdtempSync(join(root, 'two-'));
  const logs = await Promise.all([openLog(folder, 'key'), openLog(folder, 'key')]);
  const results = await Promise.allSettled(logs.map((log, at) => log.append(recordOf(at + 1))));
  expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  expect(results.find((result) => result.status === 'rejected')?.reason).toBeInstanceOf(FencedError);
});

test('an attempt is rejected even if the number of its commit was already removed', async () => {
  const folder = mkdtempSync(join(root, 'swept-'));
  const stale = await openLog(folder, 'key');
  const fresh = await openLog(folder, 'key');
  await fresh.append(recordOf(2));
  await fresh.append(recordOf(3));
  expect(readdirSync(folder)).toEqual(['key.0000000002.json']);
  await expect(stale.append(recordOf(1))).rejects.toBeInstanceOf(FencedError);
  expect((await openLog(folder, 'key')).last).toEqual(recordOf(3));
  expect(readdirSync(folder)).toEqual(['key.0000000002.json']);
});

test('an attempt whose commit is removed on its way, because the next one has begun, is rejected', async () => {
  const folder = mkdtempSync(join(root, 'overtaken-'));
  const stale = await openLog(folder, 'key');
  const write = spyOn(localFolders, 'write').mockImplementationOnce(async (path, text) => {
    write.mockRestore();
    await localFolders.write(path, text);
    const fresh = await openLog(folder, 'key');
    await fresh.append(recordOf(2));
    await fresh.sweep(2);
  });
  await expect(stale.append(recordOf(1))).rejects.toBeInstanceOf(FencedError);
  expect((await openLog(folder, 'key')).last).toEqual(recordOf(2));
});

function writerAt(path: string, more: Partial<WriteTarget>) {
  const context = {
    config: FileDestinationConfig.parse({ path, format: 'jsonl' }),
    filesRoot: root,
    signal: new AbortController().signal,
    warn() {},
  } as unknown as DestinationContext;
  const columns = [{ name: 'id', type: 'integer' as const, source_type: null, dialect: null, nullable: false }];
  const keys = { connection_id: 'c', stream_id: 's', connection_run_id: 'r', stream_run_id: 'run', state_version: 0 };
  const base = { schema: null, table: 't', columns, primary_key: [], cursor_column: null, mode: 'append' as const };
  return openTableWriter(context, { ...base, ...keys, fence: 1, ...more });
}

test('the next attempt finishes a commit whose renames were lost in a crash', async () => {
  const first = await writerAt('crash', { fence: 1 });
  await first.write({ rows: [['1']], bytes: 1 });
  await first.finish({ cursor: '1' });
  const folder = join(root, 'crash/t');
  // Like a process that dies right after the commit of an overwrite, before any rename or removal.
  const log = await openLog(join(root, 'crash/_pipeline_state'), 'c-s');
  writeFileSync(join(folder, '.s.2.jsonl'), '{"id":2}\n');
  writeFileSync(join(folder, '.s.2.left-over'), 'never committed');
  const publish = [{ from: '.s.2.jsonl', to: 'run2-00000.jsonl' }];
  await log.append(recordOf(2, { stream_run_id: 'run2', finished: true, publish, remove: ['run-00000.jsonl'] }));
  expect(readdirSync(folder)).toContain('run-00000.jsonl');

  const next = await writerAt('crash', { fence: 3, stream_run_id: 'run2' });
  expect(next.committed).toMatchObject({ finished: true, same_stream_run: true });
  expect(readdirSync(folder)).toEqual(['run2-00000.jsonl']);
  expect(readFileSync(join(folder, 'run2-00000.jsonl'), 'utf8')).toBe('{"id":2}\n');
});

test('the next attempt removes uncommitted files of a killed one', async () => {
  const killed = await writerAt('killed', { fence: 1 });
  await killed.write({ rows: [['1']], bytes: 1 });
  expect(readdirSync(join(root, 'killed/t'))).toHaveLength(1);
  const next = await writerAt('killed', { fence: 2 });
  expect(readdirSync(join(root, 'killed/t'))).toEqual([]);
  await next.abort();
  await killed.abort();
});

test('a commit that is not recorded publishes and removes nothing', async () => {
  const first = await writerAt('unrecorded', { fence: 1 });
  await first.write({ rows: [['1']], bytes: 1 });
  await first.finish({ cursor: '1' });
  const late = await writerAt('unrecorded', { fence: 2, stream_run_id: 'run2', mode: 'overwrite' });
  await late.write({ rows: [['2']], bytes: 1 });
  // Another attempt has committed, but has not yet removed the files of this one.
  const log = await openLog(join(root, 'unrecorded/_pipeline_state'), 'c-s');
  await log.append(recordOf(3));
  await expect(late.finish(null)).rejects.toBeInstanceOf(FencedError);
  const shown = readdirSync(join(root, 'unrecorded/t')).filter((name) => !name.startsWith('.'));
  expect(shown).toEqual(['run-00000.jsonl']);
  await late.abort();
});

test('an attempt that pauses after its claim removes nothing of the next one', async () => {
  const folder = join(root, 'paused/t');
  const states = join(root, 'paused/_pipeline_state');
  const next = await writerAt('paused', { fence: 3 });
  await next.write({ rows: [['1']], bytes: 1 });
  writeFileSync(join(states, '.c-s.9.3'), 'a commit on its way');
  writeFileSync(join(states, '.c-s.9.1'), 'left over');
  const target = { connection_id: 'c', stream_id: 's', fence: 2 } as WriteTarget;
  const late = await FolderTable.open(localFolders, { table: folder, states, drafts: folder }, target);
  await late.sweep();
  expect(readdirSync(states).toSorted()).toEqual(['.c-s.9.3', 'c-s.0000000001.json']);
  await next.finish({ cursor: '1' });
  expect(readdirSync(folder)).toEqual(['run-00000.jsonl']);
});

test('a commit whose confirmation was lost keeps its files', async () => {
  const folder = join(root, 'unconfirmed/t');
  const writer = await writerAt('unconfirmed', { fence: 1 });
  await writer.write({ rows: [['1']], bytes: 1 });
  const sync = spyOn(localFolders, 'sync').mockImplementationOnce(() => Promise.reject(new Error('EIO')));
  await expect(writer.finish({ cursor: '1' })).rejects.toThrow('EIO');
  sync.mockRestore();
  await writer.abort();
  const next = await writerAt('unconfirmed', { fence: 2 });
  expect(next.committed).toMatchObject({ finished: true });
  expect(readdirSync(folder)).toEqual(['run-00000.jsonl']);
});
