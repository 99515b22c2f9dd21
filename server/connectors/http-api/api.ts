import type { ConnectorContext } from '../contract/connector.ts';
import { ConfigurationError, SchemaChangedError } from '../contract/errors.ts';
import { type Authentication, createSigner } from '../kits/rest/signing/authentication.ts';
import { CompletenessGuards } from '../kits/rest/completeness.ts';
import { HttpClient } from '../kits/rest/client.ts';
import type { Position } from '../kits/rest/pagination.ts';
import { sharedLimiter } from '../kits/rest/rate-limiter.ts';
import { INTERACTIVE } from '../kits/rest/retry.ts';
import { REQUEST_PARTS } from '../kits/rest/signing/signatures.ts';
import type { Definition, JobRequest, StreamDefinition } from './definition.ts';
import { parseDefinition } from './parse-definition.ts';
import type { HttpApiConfig } from './settings.ts';
import { renderEntries, renderJson, requireText, type TemplateScope } from '../kits/rest/template.ts';
import type { HttpRequest } from '../kits/rest/request.ts';

export type Context = ConnectorContext<HttpApiConfig>;

/** A service with its definition and a client that is ready to use. */
export interface Api {
  ctx: Context;
  definition: Definition;
  client: HttpClient;
  base: string;
  /** Origins that URLs in responses may have. */
  origins: ReadonlySet<string>;
  scope: Pick<TemplateScope, 'config' | 'secrets'>;
  guards: CompletenessGuards;
  /** For a check: fewer retries and short timeouts. */
  interactive: boolean;
}

/**
 * @param options.interactive for a check: fewer retries and short timeouts
 * @throws ConfigurationError when the definition is not valid
 */
export function openApi(ctx: Context, options: { interactive: boolean }): Api {
  const { definition, problem } = parseDefinition(ctx.config.definition);
  if (!definition) throw new ConfigurationError('invalid_definition', problem);
  const { config, secrets = {} } = ctx.config;
  const scope = { config, secrets };
  const base = requireText(definition.base_url, scope).replace(/\/+$/, '');
  const parsed = URL.parse(base);
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    throw new ConfigurationError('invalid_address', `base_url is not an http or https URL: ${base}`);
  const origins = new Set([parsed.origin, ...definition.allowed_origins.map((one) => new URL(one).origin)]);
  const { requests_per_second = null, concurrency } = definition.rate_limit;
  const timeout_seconds = Math.min(
    definition.timeout_seconds,
    options.interactive ? INTERACTIVE.timeout_seconds : Infinity,
  );
  const client = new HttpClient(ctx, {
    signer: createSigner(ctx, renderTexts(definition.authentication, scope)),
    limiter: sharedLimiter({ requests_per_second, concurrency }, base, secrets),
    secrets,
    origins,
    ...definition.retries,
    ...(options.interactive && INTERACTIVE),
    timeout_seconds,
    max_bytes: definition.max_page_bytes,
  });
  return {
    ctx,
    definition,
    client,
    base,
    origins,
    scope,
    guards: new CompletenessGuards(),
    interactive: options.interactive,
  };
}

/** The text to sign refers to each request, so that its references stay. */
const REQUEST_SCOPE = Object.fromEntries(REQUEST_PARTS.map((part) => [part, `{{ request.${part} }}`]));

function renderTexts(authentication: Definition['authentication'], scope: TemplateScope): Authentication {
  const own = { ...scope, request: REQUEST_SCOPE as TemplateScope['request'] };
  const rendered = Object.entries(authentication).map(([name, value]: [string, unknown]) => [
    name,
    typeof value === 'string' ? requireText(value, own) : renderJson(value, own),
  ]);
  return Object.fromEntries(rendered) as Authentication;
}

export function streamOf({ definition }: Pick<Api, 'definition'>, name: string): StreamDefinition {
  const stream = definition.streams.find((one) => one.name === name);
  if (!stream) throw new SchemaChangedError('stream_missing', `The definition no longer has the stream "${name}"`);
  return stream;
}

const ACCEPTED: Record<StreamDefinition['format'], string> = {
  json: 'application/json',
  json_lines: 'application/x-ndjson, application/json',
  csv: 'text/csv',
  xml: 'application/xml, text/xml',
};

interface PlacedRequest {
  scope: TemplateScope;
  position: Position;
  /** Of a job; absent: the one of the stream. */
  request?: JobRequest | undefined;
}

/** The request for one page. @throws ConfigurationError when a value in the path is missing */
export function pageRequest(api: Api, stream: StreamDefinition, at: PlacedRequest): HttpRequest {
  const { pagination } = stream;
  const { position, request = stream.request } = at;
  const size = 'size' in pagination ? pagination.size : null;
  const { token, number, offset } = position;
  const scope = { ...at.scope, page: { token, number, offset, size } };
  const headers: Record<string, string> = { accept: ACCEPTED[stream.format] };
  for (const entries of [api.definition.headers, request.headers]) {
    for (const [name, value] of renderEntries(entries, scope)) headers[name.toLowerCase()] = value;
  }
  const body = request.body === undefined ? null : JSON.stringify(renderJson(request.body, scope));
  if (body !== null) headers['content-type'] ??= 'application/json';
  if (position.address) return { method: request.method, url: position.address, headers, body };
  const path = requireText(request.path, scope, encodeURIComponent);
  const url = new URL(`${api.base}${path.startsWith('/') || path === '' ? '' : '/'}${path}`);
  for (const [name, value] of renderEntries(request.query, scope)) url.searchParams.append(name, value);
  return { method: request.method, url, headers, body };
}
