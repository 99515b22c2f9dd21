import type * as oidc from 'openid-client';
import type { Deps } from '../../../deps.ts';
import { guardedFetch } from '../../../platform/net/guarded-fetch.ts';
import type { ProviderSettings } from '../../../platform/provider-settings.ts';
import { ReferenceError } from '../../../platform/secret-references.ts';
import { readSecret } from '../../../connector-runtime/references/read-secret.ts';
import { openid } from './openid.ts';
import { misconfigured, refusalOf } from './refusals.ts';

/** The description of a provider is read again after this time, or after a sign-in that it refused. */
const FRESH_MS = 3_600_000;
const TIMEOUT_SECONDS = 10;
/** How far the clocks of provider and service may differ. */
const CLOCK_TOLERANCE_SECONDS = 60;

interface Discovered {
  config: oidc.Configuration;
  at: number;
}

const known = new WeakMap<Deps, Map<string, Discovered>>();

function discoveredBy(deps: Deps): Map<string, Discovered> {
  const all = known.get(deps) ?? new Map<string, Discovered>();
  known.set(deps, all);
  return all;
}

/**
 * The client of a provider. Nothing asks the provider before the first sign-in, so the service starts without it. A
 * description that cannot be read again stays in use.
 * @throws ApiError `sign_in_provider_unreachable`, `sign_in_provider_misconfigured`
 */
export async function clientOf(deps: Deps, settings: ProviderSettings): Promise<oidc.Configuration> {
  const all = discoveredBy(deps);
  const before = all.get(settings.id);
  if (before && performance.now() - before.at < FRESH_MS) return before.config;
  try {
    const config = await discover(deps, settings);
    all.set(settings.id, { config, at: performance.now() });
    return config;
  } catch (error) {
    const refusal = refusalOf(error, settings);
    deps.log.warn({ err: error, provider: settings.id, code: refusal.code }, 'sign-in provider cannot be used');
    if (!before) throw refusal;
    return before.config;
  }
}

/** The next sign-in reads the description, the keys and the client secret again. */
export const forgetClient = (deps: Deps, { id }: ProviderSettings): void => {
  discoveredBy(deps).delete(id);
};

async function discover(deps: Deps, settings: ProviderSettings): Promise<oidc.Configuration> {
  // The operator names the provider, which may be in the private network. Plain http needs an entry in EGRESS_ALLOW.
  const send = guardedFetch({ ...deps.egress, internal: true });
  const isPlain = settings.issuer.startsWith('http:');
  return openid().discovery(
    new URL(settings.issuer),
    settings.client_id,
    { [openid().clockTolerance]: CLOCK_TOLERANCE_SECONDS },
    await authenticationOf(deps, settings),
    {
      [openid().customFetch]: (url, { body, ...init }) => send(url, { ...init, body: body as RequestInit['body'] }),
      timeout: TIMEOUT_SECONDS,
      // Otherwise the signature of a token that comes straight from the provider is not checked.
      execute: [openid().enableNonRepudiationChecks, ...(isPlain ? [openid().allowInsecureRequests] : [])],
    },
  );
}

async function authenticationOf(deps: Deps, settings: ProviderSettings): Promise<oidc.ClientAuth> {
  if (settings.client_secret === null) return openid().None();
  try {
    // The body and not the header: providers disagree on how the header is encoded.
    return openid().ClientSecretPost(await readSecret(deps, settings.client_secret));
  } catch (error) {
    if (!(error instanceof ReferenceError) || error.reason === 'unreachable') throw error;
    throw misconfigured(settings, `client_secret cannot be read: ${error.message}`);
  }
}
