import { BackupError, type BackupManifest, writeBackup } from '../../../db/backup.ts';
import { migrateDatabase } from '../../../db/migrate.ts';
import { restoreBackup } from '../../../db/restore.ts';
import type { Db } from '../../../db/types.ts';
import type { Config } from '../../platform/config.ts';
import { openObjectStore } from '../../platform/object-store.ts';
import { openSecrets } from '../../platform/secrets.ts';
import { holdRestored, releaseSchedules } from '../../runs/hold-restored.ts';
import { inControlDatabase, withDatabase } from './database-of.ts';

type Say = (line: string) => void;

/** `backup <folder>` */
export async function backupCommand(config: Config, [folder]: string[], say: Say): Promise<number> {
  if (!folder) throw new BackupError('Name a new folder: backup <folder>');
  const objects = openObjectStore(config.OBJECT_STORE_URL);
  const manifest = await withDatabase(config, (url) => writeBackup({ url, objects }, folder));
  say(`Backup in ${folder}: ${summaryOf(manifest)}`);
  say(
    `  It opens only with SECRET_KEY ${manifest.key_id ?? ''}, which is not part of it. Keep the key in another place`,
  );
  say('  Not included: databases of sources and destinations, such as the warehouse of the demo, and DATA_DIR/files');
  return 0;
}

/** `restore <folder>`, or `restore --after-pitr` for a database that PostgreSQL itself has set back. */
export async function restoreCommand(config: Config, [from]: string[], say: Say): Promise<number> {
  if (!from) throw new BackupError('Name the folder of a backup: restore <folder>, or restore --after-pitr');
  let failed = 0;
  const afterwards = async (db: Db) => {
    failed = await holdRestored(db);
  };
  if (from === '--after-pitr') {
    await withDatabase(config, migrateDatabase);
    await inControlDatabase(config, (db) => db.transaction(afterwards));
  } else {
    const objects = openObjectStore(config.OBJECT_STORE_URL);
    const { key_id } = openSecrets(config.SECRET_KEY);
    const manifest = await withDatabase(config, (url) => restoreBackup(from, { url, objects, key_id, afterwards }));
    say(`Restored ${from}: ${summaryOf(manifest)}`);
  }
  if (failed > 0) say(`  ${failed} ${failed === 1 ? 'run' : 'runs'} had not ended and failed with the code "restored"`);
  say('  Schedules are held. Make sure that no process uses the former database, start the service, then run: resume');
  return 0;
}

/** `resume` */
export async function resumeCommand(config: Config, _: string[], say: Say): Promise<number> {
  const released = await inControlDatabase(config, releaseSchedules);
  say(released ? 'Schedules start runs again' : 'Schedules were not held');
  return 0;
}

function summaryOf({ tables, objects, missing_objects }: BackupManifest): string {
  const rows = tables.reduce((sum, one) => sum + one.rows, 0);
  const bytes = [...tables, ...objects].reduce((sum, one) => sum + one.bytes, 0);
  const missing = missing_objects > 0 ? `, ${missing_objects} objects had expired` : '';
  const count = (value: number) => value.toLocaleString('en');
  return `${count(rows)} rows of ${tables.length} tables, ${count(objects.length)} objects${missing}, ${count(Math.ceil(bytes / 1024))} kB`;
}
