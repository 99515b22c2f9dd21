import { ConfigurationError } from '../../contract/errors.ts';
import { CompletenessGuards } from '../../kits/rest/completeness.ts';
import { Notices } from '../../kits/rest/notices.ts';
import { sharedLimiter } from '../../kits/rest/rate-limiter.ts';
import { BACKGROUND, INTERACTIVE } from '../../kits/rest/retry.ts';
import { ManifestClient } from '../requests/client.ts';
import { normalizedConfig } from '../spec/config-normalization.ts';
import { validConfig } from '../spec/config-validation.ts';
import type { DeclarativeSource } from '../components/source-components.ts';
import type { HttpRequester } from '../components/request-components.ts';
import { parseManifest, type Unsupported } from '../components/parse-manifest.ts';
import type { AnyStream, DeclarativeStream } from '../components/stream-components.ts';
import { parseDuration } from '../interpolation/python-time.ts';
import { buildRequest } from '../requests/build-request.ts';
import type { SeenResponse } from '../requests/error-handling.ts';
import { configOf, type Context, filesOf } from './settings.ts';
import { createSigner, type Signing } from '../auth/signers.ts';
import { pythonSigner } from '../python/signer.ts';
import { inPython, type PythonSession } from '../python/session.ts';
import { openPython } from './open-python.ts';
import { checkConfig } from '../spec/specification.ts';
import { type Scope, Templates } from '../interpolation/template.ts';
import { numberOf } from '../interpolation/values.ts';

/** A manifest with its configuration, ready to send requests. */
export interface Runtime {
  ctx: Context;
  source: DeclarativeSource;
  templates: Templates;
  /** The variables of every template. */
  scope: Scope;
  /** Origins that URLs in responses may have: those that the manifest itself uses. */
  origins: Set<string>;
  concurrency: number;
  /** For a check: fewer retries and short timeouts. */
  interactive: boolean;
  clients: Map<unknown, ManifestClient>;
  /** All streams, once they have been requested. */
  found: Promise<FoundStream[]> | null;
  guards: CompletenessGuards;
  notices: Notices;
  /** Properties that endpoints list, by the component that names the endpoint. */
  properties: Map<unknown, Promise<string[]>>;
  /** Whether responses may be ZIP archives. */
  unpacks_zip: boolean;
  /** The fields that a read needs, by the name of its stream. Of other streams all of them are. */
  selected: Map<string, ReadonlySet<string>>;
  /** Null: the manifest has no components.py. */
  python: PythonSession | null;
  /** The JSON schema of a stream by its loaders. */
  schemaOf(stream: DeclarativeStream): Promise<Record<string, unknown>>;
}

interface Opening {
  interactive: boolean;
  schemaOf(runtime: Runtime, stream: DeclarativeStream): Promise<Record<string, unknown>>;
}

export interface FoundStream {
  stream: AnyStream;
  /** Name of the dynamic stream that it was created from; null: the manifest lists it. */
  template: string | null;
}

const MAX_CONCURRENCY = 10;
const DEFAULT_CONCURRENCY = 2;

/** @throws ConfigurationError when the manifest uses unsupported features, naming every place */
export function openManifest(ctx: Context, { interactive, schemaOf }: Opening): Runtime {
  const { manifest, problem } = parseManifest(ctx.config.manifest, filesOf(ctx.config));
  if (!manifest) throw new ConfigurationError('invalid_manifest', problem);
  const { source, unsupported, specification, left_out } = manifest;
  if (!source || (unsupported.length > 0 && !ctx.config.skip_unsupported_streams)) throw unsupportedError(unsupported);
  if (left_out.length > 0) ctx.log.info('unsupported streams are left out', { left_out });
  const templates = new Templates(() => ctx.now());
  const checked = checkConfig(specification, configOf(ctx.config)).config;
  const config = validConfig(source, normalizedConfig(source, checked, templates), templates);
  const scope = scopeOf(config);
  const concurrency = concurrencyOf(source, templates, scope);
  const runtime: Runtime = {
    ctx,
    source,
    templates,
    scope,
    origins: new Set(),
    concurrency,
    interactive,
    clients: new Map(),
    found: null,
    guards: new CompletenessGuards(),
    notices: new Notices(),
    properties: new Map(),
    selected: new Map(),
    unpacks_zip: JSON.stringify(source).includes('"ZipfileDecoder"'),
    python: null,
    schemaOf: onceForEach((stream) => schemaOf(runtime, stream)),
  };
  const files = filesOf(ctx.config);
  if (files) {
    runtime.python = openPython({
      ctx,
      templates,
      scope,
      files,
      timeout_seconds: patienceOf(runtime).timeout_seconds,
      signerOf: (authenticator) => createSigner(authenticator, signingOf(runtime, scope, '')),
      send: async (requester, more) => await sendDeclared(runtime, requester, more),
    });
  }
  return runtime;
}

const scopeOf = (config: unknown): Scope => ({
  config,
  // Jinja's own name for the template, which has nothing that manifests ask for.
  self: {},
  parameters: {},
  next_page_token: null,
  stream_slice: {},
  stream_interval: {},
  stream_partition: {},
  stream_state: {},
});

function onceForEach<Key, Value>(load: (key: Key) => Value): (key: Key) => Value {
  const loaded = new Map<Key, Value>();
  return (key) => {
    const known = loaded.get(key) ?? load(key);
    loaded.set(key, known);
    return known;
  };
}

export function unsupportedError(unsupported: Unsupported[]): ConfigurationError {
  const places = unsupported.map(({ place, what }) => `${place}: ${what}`).join('; ');
  const count = unsupported.length === 1 ? 'an unsupported feature' : `${unsupported.length} unsupported features`;
  return new ConfigurationError('unsupported_manifest', `The manifest uses ${count}: ${places}`);
}

function concurrencyOf({ concurrency_level: level }: DeclarativeSource, templates: Templates, scope: Scope): number {
  const given = level?.default_concurrency;
  const wanted = typeof given === 'string' ? numberOf(templates.value(given, scope)) : (given ?? null);
  return Math.max(
    1,
    Math.min(Math.trunc(wanted ?? DEFAULT_CONCURRENCY), level?.max_concurrency ?? MAX_CONCURRENCY, MAX_CONCURRENCY),
  );
}

/** The lowest rate of the API budget applies to all requests. */
function requestsPerSecond({ api_budget }: DeclarativeSource, templates: Templates, scope: Scope): number | null {
  const rates = (api_budget?.policies ?? []).flatMap((policy) => {
    if (policy.type === 'UnlimitedCallRatePolicy') return [];
    const all =
      policy.type === 'FixedWindowCallRatePolicy'
        ? [{ limit: policy.call_limit, interval: policy.period }]
        : policy.rates;
    return all.map(({ limit, interval }) => {
      const seconds = (parseDuration(templates.text(interval, scope) ?? '')?.micros ?? 1_000_000) / 1_000_000;
      return Number(typeof limit === 'string' ? templates.value(limit, scope) : limit) / Math.max(seconds, 0.001);
    });
  });
  const known = rates.filter((rate) => Number.isFinite(rate) && rate > 0);
  return known.length > 0 ? Math.min(...known) : null;
}

/** The client for a requester. Requesters with the same authenticator share one. */
export function clientOf(runtime: Runtime, requester: HttpRequester): ManifestClient {
  const known = runtime.clients.get(requester.authenticator);
  if (known) return known;
  const { ctx, source, templates, scope, concurrency } = runtime;
  const own = { ...scope, parameters: requester.$parameters ?? {} };
  const limits = { requests_per_second: requestsPerSecond(source, templates, scope), concurrency };
  const account = [requester.url_base ?? requester.url, ctx.config.config, ctx.config.secrets];
  const client = new ManifestClient(ctx, {
    signer: createSigner(requester.authenticator, signingOf(runtime, own, requester.url_base ?? requester.url ?? '')),
    limiter: sharedLimiter(limits, ...account),
    secrets: ctx.config.secrets,
    origins: runtime.origins,
    timeout_seconds: patienceOf(runtime).timeout_seconds,
    max_bytes: ctx.config.max_page_bytes,
    interactive: runtime.interactive,
    python: runtime.python,
    unpacks_zip: runtime.unpacks_zip,
  });
  runtime.clients.set(requester.authenticator, client);
  return client;
}

const patienceOf = ({ interactive }: Runtime) => (interactive ? INTERACTIVE : BACKGROUND);

const signingOf = (runtime: Runtime, scope: Scope, base: string): Signing => ({
  ctx: runtime.ctx,
  templates: runtime.templates,
  scope,
  login: (one) => logIn(runtime, one),
  custom: (component) => pythonSigner(inPython(runtime.python), component),
  base,
});

async function logIn(runtime: Runtime, requester: HttpRequester): Promise<unknown> {
  return (await sendDeclared(runtime, requester, {}))?.json() ?? null;
}

/** The response to a requester that belongs to no stream; null: it counts as none. */
async function sendDeclared(runtime: Runtime, requester: HttpRequester, more: Scope): Promise<SeenResponse | null> {
  const { templates } = runtime;
  const scope = { ...runtime.scope, ...more, parameters: requester.$parameters ?? {} };
  const request = buildRequest({
    requester,
    templates,
    scope,
    injections: [],
    address: null,
    origins: runtime.origins,
  });
  const sent = { request, handler: requester.error_handler, interpolation: { templates, scope } };
  const seen = await clientOf(runtime, requester).send(sent);
  return seen.response.status < 400 && !seen.isIgnored ? seen : null;
}
