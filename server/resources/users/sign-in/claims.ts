import type { ProviderSettings } from '../../../platform/provider-settings.ts';
import { refused } from './refusals.ts';

/** What a provider says about a person. */
export interface Person {
  issuer: string;
  subject: string;
  /** In lower case. */
  email: string;
  is_verified: boolean;
  full_name: string;
  /** Null: the settings name no claim. */
  groups: string[] | null;
  /** The value of `account_claim`; null if the settings name none. */
  tenant: string | null;
  /** When the person proved itself, in seconds since 1970; null if the provider does not say. */
  signed_in_at: number | null;
}

export type PersonClaims = Record<string, unknown>;

const MAX_NAME = 200;

/** Reads the claims of a verified ID token and of userinfo. @throws ApiError 401, 403 */
export function readPerson(claims: PersonClaims, settings: ProviderSettings): Person {
  const groups = groupsIn(claims, settings);
  const { email, is_verified } = addressIn(claims, settings);
  const named = [claims.name, claims.preferred_username, email].find((one) => typeof one === 'string' && one.trim());
  return {
    issuer: String(claims.iss),
    subject: String(claims.sub),
    email,
    is_verified,
    full_name: String(named).trim().slice(0, MAX_NAME),
    groups,
    tenant: settings.account_claim === null ? null : textIn(claimAt(claims, settings.account_claim)),
    signed_in_at: typeof claims.auth_time === 'number' ? claims.auth_time : null,
  };
}

function addressIn(claims: PersonClaims, settings: ProviderSettings): Pick<Person, 'email' | 'is_verified'> {
  const email = textIn(claims.email)?.toLowerCase() ?? '';
  const at = email.lastIndexOf('@');
  if (at < 1 || at === email.length - 1 || email.length > 254) {
    const message = `${settings.name} names no e-mail address for you. The scope or claim email is missing`;
    throw refused(settings, 403, 'sign_in_email_missing', message);
  }
  const is_verified = claims.email_verified === true || claims.email_verified === 'true';
  if (settings.require_verified_email && !is_verified) {
    const message = `${settings.name} has not verified ${email}. Verify the address there and sign in again`;
    throw refused(settings, 403, 'sign_in_email_unverified', message);
  }
  if (settings.email_domains && !settings.email_domains.includes(email.slice(at + 1))) {
    const message = `Addresses of ${email.slice(at + 1)} may not sign in with ${settings.name}`;
    throw refused(settings, 403, 'sign_in_domain_not_allowed', message);
  }
  return { email, is_verified };
}

/** A person in too many groups gets a reference to them instead, which is not the same as no groups. */
function groupsIn(claims: PersonClaims, settings: ProviderSettings): string[] | null {
  const { groups_claim } = settings;
  if (groups_claim === null) return null;
  const value = claimAt(claims, groups_claim);
  const isElsewhere = value === undefined && Object.hasOwn(claims._claim_names ?? {}, groups_claim);
  const groups = typeof value === 'string' ? [value] : (value ?? []);
  if (!isElsewhere && Array.isArray(groups) && groups.every((one) => typeof one === 'string')) return groups;
  const message = `${settings.name} does not list your groups in ${groups_claim}. Limit the groups that it sends`;
  throw refused(settings, 403, 'sign_in_groups_unknown', message);
}

/** A claim by its name, which may contain dots, or by its path, such as `realm_access.roles`. */
export function claimAt(claims: PersonClaims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name
    .split('.')
    .reduce<unknown>(
      (value, key) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, key)
          ? (value as PersonClaims)[key]
          : undefined,
      claims,
    );
}

const textIn = (value: unknown): string | null =>
  typeof value === 'string' && value.trim() !== '' ? value.trim() : null;
