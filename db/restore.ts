import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import type { ObjectStore } from '../server/platform/object-store.ts';
import { BackupError, type BackupManifest, listTables, objectFile, readTable, verifyBackup } from './backup.ts';
import { migrateDatabase, migrateTo } from './migrate.ts';
import journal from './migrations/meta/_journal.json' with { type: 'json' };
import { UNFINISHED_RESTORE } from './pinned-key.ts';
import type { Db } from './types.ts';

interface RestoreTarget {
  url: string;
  objects: ObjectStore;
  /** Id of the SECRET_KEY of the service. */
  key_id: string;
  /** Happens in the transaction of the restore. */
  afterwards(db: Db): Promise<void>;
}

/**
 * Loads a backup into an empty database, in one transaction, and its objects into the object store. Everything is checked
 * before: a damaged backup, another key or a database with rows leave the target as it was.
 * @throws BackupError
 */
export async function restoreBackup(folder: string, target: RestoreTarget): Promise<BackupManifest> {
  const manifest = await verifyBackup(folder);
  refuseUnfit(manifest, target.key_id);
  const client = postgres(target.url, { max: 1, onnotice: () => {}, max_lifetime: null, idle_timeout: 0 });
  try {
    await refuseUsed(client);
    await migrateTo(target.url, manifest.migrations);
    const added: string[] = [];
    try {
      for (const { key } of manifest.objects) await putObject(folder, key, { store: target.objects, added });
      await load(client, { folder, manifest });
    } catch (error) {
      await client.end({ timeout: 0 });
      for (const key of added) await target.objects.delete(key);
      throw error;
    }
    await migrateDatabase(target.url);
    await complete(client, { manifest, afterwards: target.afterwards });
    return manifest;
  } catch (error) {
    if (error instanceof BackupError) throw error;
    throw new BackupError(`The backup was not restored: ${(error as Error).message}`, { cause: error });
  } finally {
    // At once: a transaction that was not committed ends with its connection.
    await client.end({ timeout: 0 });
  }
}

function refuseUnfit({ migrations, last_migration, key_id }: BackupManifest, own_key_id: string): void {
  if (journal.entries[migrations - 1]?.tag !== last_migration)
    throw new BackupError(
      `The backup was written by a newer version (${last_migration}). Restore it with that version`,
    );
  if (key_id !== null && key_id !== own_key_id)
    throw new BackupError(
      `SECRET_KEY is not the key of the backup: its id is ${own_key_id}, the backup was encrypted with ${key_id}. Set SECRET_KEY to that key`,
    );
}

async function refuseUsed(client: postgres.Sql): Promise<void> {
  const [table] = await client`select to_regclass('public.accounts') as found`;
  if (!table?.found) return;
  const [used] = await client`select 1 from accounts limit 1`;
  if (used) throw new BackupError('The database of DATABASE_URL is not empty. Restore into a new database');
}

/** Adds the key to `added` unless the store has the object: that of an installation which lost its database still does. */
async function putObject(folder: string, key: string, to: { store: ObjectStore; added: string[] }): Promise<void> {
  const { store, added } = to;
  const existing = await store.get(key);
  await existing?.cancel();
  // Before it is written, since a store may keep a part of what it could not store.
  if (existing === null) added.push(key);
  await store.put(key, await Bun.file(join(folder, objectFile(key))).bytes());
}

async function load(
  client: postgres.Sql,
  { folder, manifest }: { folder: string; manifest: BackupManifest },
): Promise<void> {
  // The only connection of the client: the statements below are one transaction.
  await client.unsafe('begin');
  const tables = await listTables(client);
  // What they would do happened when the rows were written. Foreign keys are checked nevertheless.
  for (const { name } of tables) await client`alter table ${client(name)} disable trigger user`;
  for (const { name } of tables) {
    const table = manifest.tables.find((one) => one.name === name);
    if (!table) throw new BackupError(`The backup is damaged: it lacks the table ${name}. Use another backup`);
    // Migrations insert some rows themselves, such as the system roles.
    await client`delete from ${client(name)}`;
    const into = await client`copy ${client(name)} (${client(table.columns)}) from stdin`.writable();
    await pipeline(readTable(folder, name), into);
    const [loaded] = await client`select count(*)::int as count from ${client(name)}`;
    if (loaded?.count !== table.rows)
      throw new BackupError(`${loaded?.count} rows of ${table.rows} arrived in the table ${name}`);
  }
  for (const { name, last_value } of manifest.sequences) {
    if (last_value !== null) await client`select setval(${`public.${name}`}::regclass, ${last_value}::bigint)`;
  }
  for (const { name } of tables) await client`alter table ${client(name)} enable trigger user`;
  await client`
    insert into installation (key_id) values (${UNFINISHED_RESTORE}) on conflict (id) do update set key_id = excluded.key_id`;
  await client.unsafe('commit');
}

/** Until here no process starts on the database: it is migrated, but its fences are those of the backup. */
async function complete(
  client: postgres.Sql,
  { manifest, afterwards }: { manifest: BackupManifest; afterwards: RestoreTarget['afterwards'] },
): Promise<void> {
  await client.unsafe('begin');
  await client`update installation set key_id = ${manifest.key_id}`;
  await afterwards(drizzle(client));
  await client.unsafe('commit');
}
