import type { ConnectorContext } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { HURRIED_SECONDS } from '../kits/rest/send.ts';
import { Pace, Shared, sharedKey } from '../kits/rest/rate-limiter.ts';
import { ManifestClient } from './requests/client.ts';
import { normalizedConfig } from './config-rules.ts';
import type { DeclarativeSource } from './components/source-components.ts';
import type { HttpRequester, SessionTokenAuthenticator } from './components/request-components.ts';
import { parseManifest, type Unsupported } from './components/manifest.ts';
import { parseSpan } from './interpolation/python-time.ts';
import { buildCall } from './requests/request.ts';
import { type AirbyteManifestConfig, configOf } from './settings.ts';
import { createSigner } from './auth/signers.ts';
import type { FoundStream } from './streams.ts';
import { checkConfig } from './specification.ts';
import { type Scope, Templates } from './interpolation/template.ts';
import { numberOf } from './interpolation/values.ts';

export type Context = ConnectorContext<AirbyteManifestConfig>;

/** A manifest with a configuration, ready to ask its service. */
export interface Runtime {
  ctx: Context;
  source: DeclarativeSource;
  templates: Templates;
  /** What every template sees. */
  scope: Scope;
  /** Origins that addresses in answers may lead to: those that the manifest itself asks. */
  origins: Set<string>;
  concurrency: number;
  hurry: boolean;
  clients: Map<unknown, ManifestClient>;
  /** All streams, once somebody has asked for them. */
  found: Promise<FoundStream[]> | null;
}

const paces = new Shared<Pace>();
const MOST_AT_ONCE = 10;
const AT_ONCE = 2;
const TIMEOUT_SECONDS = { hurry: HURRIED_SECONDS, usual: 120 };

/** @throws ConfigurationError when the manifest needs what is not supported, naming every place */
export function openManifest(ctx: Context, options: { hurry: boolean }): Runtime {
  const { manifest, problem } = parseManifest(ctx.config.manifest);
  if (!manifest) throw new ConfigurationError('invalid_manifest', problem);
  const { source, unsupported, specification, left_out } = manifest;
  if (!source || (unsupported.length > 0 && !ctx.config.skip_unsupported_streams)) throw unsupportedError(unsupported);
  if (left_out.length > 0) ctx.log.info('streams are left out', { left_out });
  const templates = new Templates(() => ctx.now());
  const checked = checkConfig(specification, configOf(ctx.config));
  const config = normalizedConfig(source, checked.config, templates);
  const scope = {
    config,
    parameters: {},
    next_page_token: null,
    stream_slice: {},
    stream_interval: {},
    stream_partition: {},
  };
  const origins = new Set<string>();
  const concurrency = concurrencyOf(source, templates, scope);
  return { ctx, source, templates, scope, origins, concurrency, hurry: options.hurry, clients: new Map(), found: null };
}

export function unsupportedError(unsupported: Unsupported[]): ConfigurationError {
  const places = unsupported.map(({ place, what }) => `${place}: ${what}`).join('; ');
  const count = unsupported.length === 1 ? 'one place' : `${unsupported.length} places`;
  return new ConfigurationError(
    'unsupported_manifest',
    `The manifest needs what is not supported, in ${count}: ${places}`,
  );
}

function concurrencyOf({ concurrency_level: level }: DeclarativeSource, templates: Templates, scope: Scope): number {
  const given = level?.default_concurrency;
  const wanted = typeof given === 'string' ? numberOf(templates.value(given, scope)) : (given ?? null);
  return Math.max(1, Math.min(Math.trunc(wanted ?? AT_ONCE), level?.max_concurrency ?? MOST_AT_ONCE, MOST_AT_ONCE));
}

/** The strictest of the budget's rates holds for all requests. */
function requestsPerSecond({ api_budget }: DeclarativeSource, templates: Templates, scope: Scope): number | null {
  const rates = (api_budget?.policies ?? []).flatMap((policy) => {
    if (policy.type === 'UnlimitedCallRatePolicy') return [];
    const all =
      policy.type === 'FixedWindowCallRatePolicy'
        ? [{ limit: policy.call_limit, interval: policy.period }]
        : policy.rates;
    return all.map(({ limit, interval }) => {
      const seconds = (parseSpan(templates.text(interval, scope) ?? '')?.micros ?? 1_000_000) / 1_000_000;
      return Number(typeof limit === 'string' ? templates.value(limit, scope) : limit) / Math.max(seconds, 0.001);
    });
  });
  const known = rates.filter((rate) => Number.isFinite(rate) && rate > 0);
  return known.length > 0 ? Math.min(...known) : null;
}

/** The client that signs as a requester wants it; one for all that sign the same way. */
export function clientOf(runtime: Runtime, requester: HttpRequester): ManifestClient {
  const known = runtime.clients.get(requester.authenticator);
  if (known) return known;
  const { ctx, source, templates, scope, concurrency } = runtime;
  const own = { ...scope, parameters: requester.$parameters ?? {} };
  const limits = { requests_per_second: requestsPerSecond(source, templates, scope), concurrency };
  const key = sharedKey(requester.url_base ?? requester.url, limits, ctx.config.config, ctx.config.secrets);
  const client = new ManifestClient(ctx, {
    signer: createSigner(requester.authenticator, { ctx, templates, scope: own, login: (one) => logIn(runtime, one) }),
    // All streams of one account at one service count together.
    pace: paces.get(key, () => new Pace(limits)),
    secrets: stringsIn(ctx.config.secrets),
    origins: runtime.origins,
    timeout_seconds: runtime.hurry ? TIMEOUT_SECONDS.hurry : TIMEOUT_SECONDS.usual,
    max_bytes: ctx.config.max_page_bytes,
    hurry: runtime.hurry,
  });
  runtime.clients.set(requester.authenticator, client);
  return client;
}

async function logIn(runtime: Runtime, { login_requester: requester }: SessionTokenAuthenticator): Promise<unknown> {
  const { templates } = runtime;
  const scope = { ...runtime.scope, parameters: requester.$parameters ?? {} };
  const call = buildCall({ requester, templates, scope, injections: [], address: null, origins: runtime.origins });
  const judging = { templates, scope };
  const heard = await clientOf(runtime, requester).send({ call, handler: requester.error_handler, judging });
  return heard?.json() ?? null;
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}
