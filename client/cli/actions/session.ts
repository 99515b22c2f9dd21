import { createApiClient } from '../../api.ts';
import { askSecret, askText, confirmed } from '../ask.ts';
import type { Cli } from '../context.ts';
import { Refused, UsageError } from '../exit.ts';
import { checkedUrl, forgetLogin, readLogin, storeLogin, variable } from '../settings.ts';
import { moment } from '../style.ts';
import { showThing } from '../table.ts';

export async function login(cli: Cli, flags: { keyStdin: boolean }, given?: string): Promise<void> {
  const known = given ?? variable('DATA_PIPELINES_URL') ?? (flags.keyStdin ? readLogin()?.url : undefined);
  const address = known ?? (await askText(cli, { message: 'Address of the service', initial: readLogin()?.url }));
  const url = checkedUrl(address);
  const key = flags.keyStdin
    ? (await new Response(Bun.stdin.stream()).text()).trim()
    : await askSecret(cli, { message: 'API key', hint: 'give it with --key-stdin, or set DATA_PIPELINES_KEY' });
  if (key === '') throw new UsageError('The API key is empty');
  const me = await createApiClient(url, key).users.me.query();
  const path = storeLogin({ url, key });
  cli.say(`Signed in at ${url} as ${me.full_name} (${me.email}). Stored in ${path}`);
}

export function logout(cli: Cli): void {
  const stored = readLogin();
  forgetLogin();
  cli.say(
    stored ? `The key for ${stored.url} is forgotten here. It still works: see \`keys revoke\`` : 'Nothing was stored',
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

/** For whatever cannot be undone. @throws Refused when the answer is no, or nobody can be asked. */
export async function requireConfirmation(cli: Cli, options: { yes: boolean; message: string }): Promise<void> {
  if (options.yes) return;
  if (!cli.interactive) throw new UsageError(`${options.message} Say so with --yes`);
  if (!(await confirmed(options.message))) throw new Refused('failed', 'Nothing was done');
}
