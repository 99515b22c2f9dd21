import { text } from 'node:stream/consumers';
import { createApiClient } from '../../api.ts';
import { askSecret, askText, confirmed } from '../ask.ts';
import type { Cli } from '../context.ts';
import { CommandError, UsageError } from '../exit.ts';
import { checkedUrl, forgetLogin, readLogin, storeLogin, variable } from '../settings.ts';
import { moment } from '../style.ts';
import { showThing } from '../table.ts';

export async function login(cli: Cli, flags: { keyStdin: boolean }, given?: string): Promise<void> {
  const known = given ?? variable('DATA_PIPELINES_URL') ?? (flags.keyStdin ? readLogin()?.url : undefined);
  const address = known ?? (await askText(cli, { message: 'URL of the service', initial: readLogin()?.url }));
  const url = checkedUrl(address);
  const key = flags.keyStdin
    ? (await text(cli.process.stdin)).trim()
    : await askSecret(cli, { message: 'API key', hint: 'use --key-stdin or set DATA_PIPELINES_KEY' });
  if (key === '') throw new UsageError('The API key is empty');
  const me = await createApiClient(url, key).users.me.query();
  const path = storeLogin({ url, key });
  cli.print(`Signed in at ${url} as ${me.full_name} (${me.email}). Stored in ${path}`);
}

export function logout(cli: Cli): void {
  const stored = readLogin();
  forgetLogin();
  cli.print(
    stored
      ? `Removed the stored key for ${stored.url}. The key stays valid until \`keys revoke\``
      : 'No key was stored',
  );
}

export async function whoami(cli: Cli, flags: { json: boolean }): Promise<void> {
  const me = await (await cli.api()).users.me.query();
  showThing(cli, me, {
    json: flags.json,
    lines: {
      user: `${me.full_name} (${me.email})`,
      account: me.account.name,
      plan: me.account.plan.name,
      roles: me.roles.map(({ name }) => name).join(', '),
      key: me.api_key
        ? `${me.api_key.prefix}…, ${me.api_key.days_remaining} days left, until ${moment(me.api_key.expires_at)}`
        : '–',
      service: cli.login().url,
    },
  });
}

/** Asks before an act that cannot be undone. @throws CommandError when declined, UsageError without a terminal. */
export async function requireConfirmation(cli: Cli, options: { yes: boolean; message: string }): Promise<void> {
  if (options.yes) return;
  if (!cli.interactive) throw new UsageError(`${options.message} Confirm with --yes`);
  if (!(await confirmed(options.message))) throw new CommandError('failed', 'Cancelled');
}
