import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { isReference } from './secret-references.ts';

const text = () => z.string().trim().min(1).max(2000);
const names = () => z.array(text()).max(200);

/** A client secret is never in the settings themselves, which are often kept in a repository. */
const reference = z.string().refine(isReference, 'must be env:NAME, file:/path or vault:path#field');

const Provider = z
  .strictObject({
    /** Part of the address to which the provider sends people back. */
    id: z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/, 'must be lower-case letters, digits and hyphens'),
    /** On the button. */
    name: text(),
    issuer: z.url({ protocol: /^https?$/ }),
    client_id: text(),
    /** Null: a public client, which proves itself by PKCE alone. */
    client_secret: reference.nullable().default(null),
    scopes: names().default(['openid', 'email', 'profile']),
    /** Audiences that a token may name beside the client. */
    audiences: names().default([]),
    /** Domains of e-mail addresses that may sign in. Null: all. */
    email_domains: z.array(text().toLowerCase()).min(1).nullable().default(null),
    /** Whether the provider has to declare addresses as verified. */
    require_verified_email: z.boolean().default(true),
    /** Whether the first sign-in creates a user. If not, an administrator invites the user before. */
    create_users: z.boolean().default(true),
    /** Whether a verified address connects the person to the existing user with this address. */
    link_by_email: z.boolean().default(false),
    /** The account of all users. Null: by `account_claim`, or the first account. */
    account: z.uuid().nullable().default(null),
    account_claim: text().nullable().default(null),
    /** Account ids by value of `account_claim`. */
    accounts: z.record(z.string(), z.uuid()).default({}),
    /** Null: roles are managed in the console, and the provider sets those of new users only. */
    groups_claim: text().nullable().default(null),
    /** Names of roles by group. */
    roles: z.record(z.string(), names()).default({}),
    /** Roles of all users, whatever their groups. */
    default_roles: names().default([]),
  })
  .refine((one) => one.account === null || one.account_claim === null, 'takes either account or account_claim')
  .refine((one) => one.groups_claim !== null || Object.keys(one.roles).length === 0, 'needs groups_claim for roles');

/** A provider of sign-ins by OpenID Connect, as the operator configures it. */
export type ProviderSettings = z.infer<typeof Provider>;

const Providers = z
  .array(Provider)
  .max(20)
  .refine((all) => new Set(all.map(({ id }) => id)).size === all.length, 'has two providers with the same id');

/**
 * Reads the setting OIDC_PROVIDERS: a JSON list, or the path of a file with one.
 * @throws Error with a message that follows the name of the setting
 */
export function readProviders(setting: string): ProviderSettings[] {
  const json = setting.trimStart().startsWith('[') ? setting : contentOf(setting);
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new Error(`must be a JSON list: ${(error as Error).message}`, { cause: error });
  }
  const parsed = Providers.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`is invalid at ${issue?.path.join('.') || 'the list'}: ${issue?.message}`);
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`must be a JSON list or the path of a file with one: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
