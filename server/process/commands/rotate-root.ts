import { type SQL, sql } from 'drizzle-orm';
import { activateRoot, addRoot, openRoots, retireRoots, ROOTS_KNOWN_MS } from '../../../db/pinned-key.ts';
import { installation } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { triggerContext } from '../../automation/triggers/action-secrets.ts';
import { secretsContext } from '../../connector-runtime/connector-secrets.ts';
import { sshKeyContext } from '../../connector-runtime/tunnel-settings.ts';
import { type Config, ConfigError } from '../../platform/config.ts';
import { ApiError } from '../../platform/errors.ts';
import { openSecrets, type Secrets } from '../../platform/secrets.ts';
import { consentContext } from '../../resources/account-connectors/consents/stored.ts';
import { idTokenContext } from '../../resources/users/sessions.ts';
import { inControlDatabase } from './database-of.ts';

interface SealedRow extends Record<string, unknown> {
  id: string;
  account_id: string;
  owner_id: string;
  blob: string;
}

/** Where the database holds encrypted text. Answers of idempotency keys are not listed: they are deleted after a day. */
interface Place {
  what: string;
  table: string;
  blob: SQL;
  /** What else the context of the encryption names. */
  owner_id?: SQL;
  set(blob: string): SQL;
  context(row: SealedRow): string;
}

const inColumn = (name: string) => ({
  blob: sql.identifier(name) as unknown as SQL,
  set: (blob: string) => sql`${sql.identifier(name)} = ${blob}`,
});

const PLACES: readonly Place[] = [
  { what: 'source or destination', table: 'account_connectors', ...inColumn('secrets'), context: secretsContext },
  {
    what: 'SSH key of the source or destination',
    table: 'account_connectors',
    blob: sql`ssh_tunnel ->> 'encrypted_private_key'`,
    set: (blob) => sql`ssh_tunnel = jsonb_set(ssh_tunnel, '{encrypted_private_key}', to_jsonb(${blob}::text))`,
    context: ({ account_id }) => sshKeyContext(account_id),
  },
  { what: 'trigger', table: 'triggers', ...inColumn('secrets'), context: triggerContext },
  { what: 'consent', table: 'oauth_consents', ...inColumn('sealed'), context: consentContext },
  {
    what: 'session',
    table: 'sessions',
    ...inColumn('id_token'),
    owner_id: sql`identity_id`,
    context: ({ owner_id }) => idTokenContext(owner_id),
  },
];

const BATCH = 100;
const FIRST_ID = '00000000-0000-0000-0000-000000000000';

interface Encrypted {
  count: number;
  /** What did not open, so that it stays as it is. */
  unreadable: string[];
}

/**
 * Replaces the root key while the service runs, and encrypts again what the former one encrypted. Each step is safe to
 * repeat: what was interrupted continues, and until then everything opens as before. `settle` returns once all
 * processes have read the roots.
 * @throws ConfigError
 */
export async function rotateRoot(
  db: Db,
  options: { secret_key: string; settle: () => Promise<void>; say: (line: string) => void },
): Promise<Encrypted> {
  const { secret_key, settle, say } = options;
  const before = await openRoots(db, secret_key);
  const isAdded = before.keys.length > before.current + 1;
  if (!isAdded && before.keys.length > 1) {
    const rest = await encryptAgain(db, openSecrets(before));
    if (rest.count > 0) {
      say('An interrupted rotation continues');
      await settle();
      const more = await encryptAgain(db, openSecrets(before));
      return { ...more, count: rest.count + more.count };
    }
  }
  const { keys } = await addRoot(db, secret_key);
  say(`Root key ${keys.length} is in the database. Waiting until all processes know it`);
  await settle();
  const secrets = openSecrets(await activateRoot(db, secret_key));
  say(`Root key ${keys.length} is in use. Waiting until no process encrypts with the former one`);
  await settle();
  return encryptAgain(db, secrets);
}

async function encryptAgain(db: Db, secrets: Secrets): Promise<Encrypted> {
  const all: Encrypted = { count: 0, unreadable: [] };
  for (const place of PLACES) {
    for (let last: string | undefined = FIRST_ID; last !== undefined; ) {
      const after: string = last;
      last = await db.transaction(async (tx) => {
        const rows = await readBatch(tx, { place, after, key_id: secrets.key_id });
        await tx.execute(sql`select set_config('audit.call', ${CALL}, true)`);
        for (const row of rows) await encryptRow(tx, { secrets, place, row, all });
        return rows.at(-1)?.id;
      });
    }
  }
  return all;
}

/** Attributes the changes in the audit log. */
const CALL = JSON.stringify({ action: 'operator.rotate_root', actor_type: 'system' });

const readBatch = (tx: Db, { place, after, key_id }: { place: Place; after: string; key_id: string }) =>
  tx.execute<SealedRow>(sql`
    select * from (select id, ${place.table === 'sessions' ? sql`null` : sql`account_id`} as account_id,
      ${place.owner_id ?? sql`null`} as owner_id, ${place.blob} as blob from ${sql.identifier(place.table)}) as sealed
    where blob is not null and split_part(blob, '.', 2) <> ${key_id} and id > ${after} order by id limit ${BATCH}`);

async function encryptRow(
  tx: Db,
  { secrets, place, row, all }: { secrets: Secrets; place: Place; row: SealedRow; all: Encrypted },
): Promise<void> {
  const context = place.context(row);
  try {
    const blob = secrets.seal(secrets.open(row.blob, context), context);
    // A value that was changed meanwhile is encrypted by its writer.
    const changed = await tx.execute(sql`
      update ${sql.identifier(place.table)} set ${place.set(blob)} where id = ${row.id} and ${place.blob} = ${row.blob}
      returning id`);
    all.count += changed.length;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    all.unreadable.push(`${place.what} ${row.id}`);
  }
}

/** `rotate-key --root [--retire]`: replaces the root key, or ends the validity of what former roots hashed. */
export async function rotateRootCommand(config: Config, args: string[], say: (line: string) => void): Promise<number> {
  const { SECRET_KEY: secret_key } = config;
  if (args.includes('--retire')) {
    await inControlDatabase(config, (db) => retire(db, secret_key));
    say('API keys, sessions, invitations and addresses that were created before the rotation are not valid any more');
    return 0;
  }
  const { count, unreadable } = await inControlDatabase(config, (db) =>
    rotateRoot(db, { secret_key, settle: () => Bun.sleep(ROOTS_KNOWN_MS), say }),
  );
  say(`${count} ${count === 1 ? 'secret was' : 'secrets were'} encrypted with the new root key`);
  for (const one of unreadable) say(`  Not readable, so unchanged: ${one}. Enter its secrets again`);
  return unreadable.length === 0 ? 0 : 1;
}

async function retire(db: Db, secret_key: string): Promise<void> {
  const { keys, current } = await openRoots(db, secret_key);
  if (keys.length > current + 1)
    throw new ConfigError('A rotation of the root key was interrupted. Complete it first: rotate-key --root');
  const [row] = await db.select({ version: installation.root_version }).from(installation);
  if (row?.version === 1) throw new ConfigError('The root key was never rotated: rotate-key --root');
  await retireRoots(db);
}
