import { renameSync } from 'node:fs';
import { retireKeys, rotateKey } from '../../../db/pinned-key.ts';
import { checkSecretKey, type Config, secretKeyFile } from '../../platform/config.ts';
import { readOrMakeKeyFile } from '../../platform/key-file.ts';
import { inControlDatabase } from './database-of.ts';

const RETIRE = '--retire';

/**
 * `rotate-key [file]`: lets another SECRET_KEY open the database, from a file that is created if it is missing.
 * `rotate-key --retire`: ends the validity of the former keys. `rotate-key --root`: replaces the root key.
 */
export async function rotateKeyCommand(config: Config, args: string[], say: (line: string) => void): Promise<number> {
  if (args.includes('--root')) return (await import('./rotate-root.ts')).rotateRootCommand(config, args, say);
  if (args.includes(RETIRE)) {
    const count = await inControlDatabase(config, (db) => retireKeys(db, config.SECRET_KEY));
    say(count === 0 ? 'There was no former key' : `${count} former ${count === 1 ? 'key was' : 'keys were'} retired`);
    return 0;
  }
  const own = secretKeyFile(config);
  const file = args[0] ?? (own === null ? null : `${own}.next`);
  if (file === null) {
    say('Name a file for the new key: rotate-key <file>. It is created with a random key if it is missing');
    return 1;
  }
  const after = checkSecretKey(readOrMakeKeyFile(file), file);
  const { key_id } = await inControlDatabase(config, (db) => rotateKey(db, { before: config.SECRET_KEY, after }));
  // Last: until here the command can be repeated with the former key.
  if (own !== null && args[0] === undefined) renameSync(file, own);
  say(`The key with the id ${key_id} opens the database, and so does the former one`);
  if (own === null || args[0] !== undefined) say(`  Set SECRET_KEY to the content of ${file} for all processes`);
  say('  Start all processes again, one after the other, then run: rotate-key --retire');
  return 0;
}
