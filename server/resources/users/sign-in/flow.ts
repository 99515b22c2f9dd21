import type * as oidc from 'openid-client';
import { recordOwnUse } from '../../../../db/own-secret-uses.ts';
import type { Deps } from '../../../deps.ts';
import { ApiError } from '../../../platform/errors.ts';
import type { ProviderSettings } from '../../../platform/provider-settings.ts';
import { claimAt, type Person, type PersonClaims, readPerson } from './claims.ts';
import { clientOf, forgetClient } from './clients.ts';
import { openid } from './openid.ts';
import { refusalOf, refused } from './refusals.ts';

/** What a browser keeps, encrypted, between leaving for the provider and coming back. */
export interface PendingSignIn {
  provider: string;
  state: string;
  nonce: string;
  verifier: string;
  /** The path to open afterwards. */
  to: string;
  /** The session that the sign-in confirms and replaces. Null: a new one. */
  session_id: string | null;
  expires_at: number;
}

/** How long a person may take at the provider. */
export const PENDING_SECONDS = 600;
/** A sign-in that confirms a session happened at most this long ago. */
const RECENT_SECONDS = 300;

/** @throws ApiError 403 `sign_in_provider_unknown` */
export function providerBy(deps: Deps, id: string): ProviderSettings {
  const found = deps.config.OIDC_PROVIDERS.find((one) => one.id === id);
  if (found) return found;
  throw new ApiError(
    403,
    'sign_in_provider_unknown',
    'This sign-in provider is not set up. Go back to the sign-in page',
  );
}

const callbackOf = ({ config }: Deps, { id }: ProviderSettings) =>
  `${config.PUBLIC_URL}/console/sign-in/${id}/callback`;

/** Where to send the browser, and what it keeps. @throws ApiError if the provider cannot be used */
export async function beginSignIn(
  deps: Deps,
  settings: ProviderSettings,
  { to, session_id }: Pick<PendingSignIn, 'to' | 'session_id'>,
): Promise<{ url: URL; pending: PendingSignIn }> {
  const client = await clientOf(deps, settings);
  const pending: PendingSignIn = {
    provider: settings.id,
    state: openid().randomState(),
    nonce: openid().randomNonce(),
    verifier: openid().randomPKCECodeVerifier(),
    to,
    session_id,
    expires_at: deps.now().getTime() + PENDING_SECONDS * 1000,
  };
  const url = openid().buildAuthorizationUrl(client, {
    redirect_uri: callbackOf(deps, settings),
    scope: settings.scopes.join(' '),
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: await openid().calculatePKCECodeChallenge(pending.verifier),
    code_challenge_method: 'S256',
    // Not 0, which some providers refuse: `prompt` asks for the sign-in, `max_age` for the date of it in the token.
    ...(session_id !== null && { prompt: 'login', max_age: String(RECENT_SECONDS) }),
  });
  return { url, pending };
}

/**
 * Exchanges the code of the provider's response and verifies the tokens.
 * @throws ApiError 401 for the response, 403 for the person, 400 if the provider cannot be used
 */
export async function completeSignIn(
  deps: Deps,
  settings: ProviderSettings,
  { pending, search }: { pending: PendingSignIn; search: string },
): Promise<{ person: Person; id_token: string }> {
  try {
    const client = await clientOf(deps, settings);
    await recordUse(deps, client, settings);
    const tokens = await openid().authorizationCodeGrant(client, new URL(`${callbackOf(deps, settings)}${search}`), {
      expectedState: pending.state,
      expectedNonce: pending.nonce,
      pkceCodeVerifier: pending.verifier,
      idTokenExpected: true,
    });
    const claims = tokens.claims()!;
    refuseOtherAudiences(claims, settings);
    const person = readPerson(await complete(client, { claims, tokens, settings }), settings);
    if (pending.session_id !== null) requireRecent(deps, person, settings);
    return { person, id_token: tokens.id_token! };
  } catch (error) {
    forgetClient(deps, settings);
    const refusal = refusalOf(error, settings);
    deps.log.warn({ err: error, provider: settings.id, code: refusal.code }, 'sign-in refused');
    throw refusal;
  }
}

/** The client secret is sent together with the code. */
async function recordUse(deps: Deps, client: oidc.Configuration, { client_secret }: ProviderSettings): Promise<void> {
  const { token_endpoint } = client.serverMetadata();
  if (client_secret === null || token_endpoint === undefined) return;
  await recordOwnUse(deps.db, { setting: 'OIDC_PROVIDERS', host: new URL(token_endpoint).host }, deps.now());
}

/** A token for several audiences can be replayed by each of them. */
function refuseOtherAudiences({ aud }: oidc.IDToken, settings: ProviderSettings): void {
  const trusted = [settings.client_id, ...settings.audiences];
  if ([aud].flat().every((one) => trusted.includes(one))) return;
  throw refused(settings, 401, 'sign_in_token_invalid', 'The token of the provider is also for other services');
}

/** Adds the claims of userinfo if the token lacks a claim that is needed. */
async function complete(
  client: oidc.Configuration,
  from: {
    claims: oidc.IDToken;
    tokens: Awaited<ReturnType<typeof oidc.authorizationCodeGrant>>;
    settings: ProviderSettings;
  },
): Promise<PersonClaims> {
  const { claims, tokens, settings } = from;
  const needed = ['email', settings.groups_claim, settings.account_claim].filter((one) => one !== null);
  const isComplete = needed.every((name) => claimAt(claims, name) !== undefined);
  if (isComplete || !client.serverMetadata().userinfo_endpoint) return claims;
  return { ...(await openid().fetchUserInfo(client, tokens.access_token, claims.sub)), ...claims };
}

function requireRecent(deps: Deps, { signed_in_at }: Person, settings: ProviderSettings): void {
  const age = deps.now().getTime() / 1000 - (signed_in_at ?? 0);
  if (age < RECENT_SECONDS) return;
  const message = `${settings.name} did not ask you to sign in again, or does not report when you did`;
  throw refused(settings, 403, 'sign_in_not_recent', message);
}

/** Where the provider ends its own session. Null: it has no such page, or cannot be asked now. */
export async function signOutUrl(
  deps: Deps,
  { provider, id_token }: { provider: string; id_token: string | null },
): Promise<string | null> {
  const settings = deps.config.OIDC_PROVIDERS.find((one) => one.id === provider);
  const client = settings && (await clientOf(deps, settings).catch(() => null));
  if (!client?.serverMetadata().end_session_endpoint) return null;
  return openid().buildEndSessionUrl(client, {
    post_logout_redirect_uri: `${deps.config.PUBLIC_URL}/console`,
    ...(id_token !== null && { id_token_hint: id_token }),
  }).href;
}
