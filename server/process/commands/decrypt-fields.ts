import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Config } from '../../platform/config.ts';
import { ENCRYPTED, fieldCipher } from '../../platform/field-encryption.ts';
import { readSettings } from '../../platform/settings-by-reference.ts';
import { readRoots } from './database-of.ts';

/**
 * `bun server/decrypt-fields.ts <account id> < encrypted > plain`: decrypts every value of the mask `encrypt` in a text
 * of any form, with the first root key of the service, which its database holds. Without a database SECRET_KEY counts
 * as the root. Values of another account or key are left unchanged; the exit code is then 1.
 */
if (import.meta.main) {
  const [account_id] = process.argv.slice(2);
  if (!account_id) {
    console.error('usage: bun server/decrypt-fields.ts <account id> < encrypted > plain');
    process.exit(2);
  }
  const { decrypt } = fieldCipher(await rootOf(await readSettings()), account_id);
  let foreign = 0;
  for await (const line of createInterface({ input: process.stdin })) {
    const plain = line.replaceAll(ENCRYPTED, (value) => {
      try {
        return decrypt(value);
      } catch {
        foreign += 1;
        return value;
      }
    });
    process.stdout.write(`${plain}\n`);
  }
  if (foreign > 0) {
    console.error(
      `${foreign} values were not decrypted: they were changed, or encrypted for another account or with another SECRET_KEY`,
    );
    process.exitCode = 1;
  }
}

async function rootOf(config: Config): Promise<string> {
  const hasDatabase =
    config.DATABASE_URL !== null ||
    ['postgres', 'postgres.cluster'].some((name) => existsSync(join(config.DATA_DIR, name)));
  return hasDatabase ? (await readRoots(config)).keys[0]! : config.SECRET_KEY;
}
