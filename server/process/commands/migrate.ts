import { migrateDatabase, readMigrations } from '../../../db/migrate.ts';
import type { Config } from '../../platform/config.ts';
import { withDatabase } from './database-of.ts';

/**
 * `migrate`, or `migrate --check`, which changes nothing: 0 when the database fits this version, 2 when migrations are
 * pending, 1 when this version cannot use it.
 */
export async function migrateCommand(config: Config, flags: string[], say: (line: string) => void): Promise<number> {
  const isCheck = flags.includes('--check');
  return withDatabase(config, async (url) => {
    const { pending, skipped, unknown } = await readMigrations(url);
    const names = (all: string[]) => all.join(', ');
    if (unknown > 0) say(`The database has ${unknown} migrations of a newer version. Use that version`);
    if (skipped.length > 0)
      say(`Not applied, although later ones are: ${names(skipped)}. Restore a backup from before the upgrade`);
    if (unknown + skipped.length > 0) return 1;
    if (pending.length === 0) {
      say('The database is up to date');
      return 0;
    }
    if (isCheck) {
      say(`Pending: ${names(pending)}`);
      return 2;
    }
    await migrateDatabase(url);
    say(`Applied: ${names(pending)}`);
    return 0;
  });
}
