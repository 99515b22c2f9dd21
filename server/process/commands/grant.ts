import { randomBytes } from 'node:crypto';
import { migrateDatabase } from '../../../db/migrate.ts';
import { type Config, ConfigError } from '../../platform/config.ts';
import { prepareServiceRole } from '../prepare-service-role.ts';

const NAME = /^[a-z_][a-z0-9_]{0,62}$/;

/**
 * `grant <role>`: a role that runs the service, and can change neither tables nor the audit log. It is created with a random
 * password unless it exists.
 */
export async function grantCommand(config: Config, [name]: string[], say: (line: string) => void): Promise<number> {
  const owner = config.DATABASE_OWNER_URL ?? config.DATABASE_URL;
  if (owner === null) throw new ConfigError('The embedded PostgreSQL has such a role already. Set DATABASE_OWNER_URL');
  if (!name || !NAME.test(name)) throw new ConfigError('Name a role of lower-case letters, digits and _: grant <role>');
  if (name === new URL(owner).username)
    throw new ConfigError(`${name} owns the tables. Name another role, with which the service is to run`);
  const password = randomBytes(24).toString('base64url');
  await migrateDatabase(owner);
  const done = await prepareServiceRole(owner, { name, password });
  const url = Object.assign(new URL(owner), { username: name, password });
  say(done === 'unchanged' ? `${name} has these rights already` : `${name} can run the service`);
  if (done === 'created') say(`  Shown only now: DATABASE_URL=${url.href}`);
  say('  Set DATABASE_OWNER_URL for the API, or run the command migrate before each upgrade');
  return 0;
}
