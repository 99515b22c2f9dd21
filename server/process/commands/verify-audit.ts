import { verifyAudit } from '../../api/audit/chain.ts';
import { type Config, ConfigError } from '../../platform/config.ts';
import { openSecrets } from '../../platform/secrets.ts';
import { inControlDatabase, readRoots } from './database-of.ts';

const ANCHOR = /^(\d{1,15}):([0-9a-f]{64})$/;

/** `verify-audit [SEAL:HASH]`: the audit log of all accounts. The exit code is 0 if it is intact and 1 if not. */
export async function verifyAuditCommand(config: Config, args: string[], say: (line: string) => void): Promise<number> {
  const anchor = anchorIn(args[0]);
  const secrets = openSecrets(await readRoots(config));
  const found = await inControlDatabase(config, (db) => verifyAudit({ db, secrets }, anchor));
  const { is_intact, entries, seals, unsealed, head, problems } = found;
  say(`${entries} entries in ${seals} seals, ${unsealed} not sealed yet`);
  if (head) say(`anchor: ${head.seal}:${head.hash}`);
  for (const one of problems)
    say(`${one.problem}: seal ${one.seal ?? '–'}, entries ${one.first_entry}–${one.last_entry}`);
  say(is_intact ? 'The audit log is intact' : 'The audit log was changed');
  return is_intact ? 0 : 1;
}

function anchorIn(text: string | undefined) {
  if (text === undefined) return null;
  const [, seal, hash] = ANCHOR.exec(text) ?? [];
  if (seal && hash) return { seal: Number(seal), hash };
  throw new ConfigError('An anchor has the form SEAL:HASH, as printed by an earlier verification');
}
