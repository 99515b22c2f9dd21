import { createInterface } from 'node:readline';
import { readConfig } from '../../platform/config.ts';
import { ENCRYPTED, fieldCipher } from '../../platform/field-encryption.ts';

/**
 * `bun server/decrypt-fields.ts <account id> < encrypted > plain`: decrypts every value of the mask `encrypt` in a text of
 * any form, with the SECRET_KEY of the service. Values of another account or key are left unchanged; the exit code is then
 * 1.
 */
if (import.meta.main) {
  const [account_id] = process.argv.slice(2);
  if (!account_id) {
    console.error('usage: bun server/decrypt-fields.ts <account id> < encrypted > plain');
    process.exit(2);
  }
  const { decrypt } = fieldCipher(readConfig().SECRET_KEY, account_id);
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
