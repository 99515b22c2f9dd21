import type { ConnectorContext } from '../contract/connector.ts';
import { ConfigurationError, SchemaChangedError } from '../contract/errors.ts';
import { type Authentication, createSigner } from '../kits/rest/authentication.ts';
import { HttpClient } from '../kits/rest/client.ts';
import type { Definition, StreamDefinition } from './definition.ts';
import { type Call, HURRIED_SECONDS } from '../kits/rest/send.ts';
import { Pace, Shared, sharedKey } from '../kits/rest/rate-limiter.ts';
import type { Position } from '../kits/rest/pagination.ts';
import { parseDefinition } from './parse-definition.ts';
import type { HttpApiConfig } from './settings.ts';
import { renderEntries, renderJson, requireText, type TemplateScope } from './template.ts';

export type Context = ConnectorContext<HttpApiConfig>;

/** A service as its definition tells of it, ready to be asked. */
export interface Api {
  ctx: Context;
  definition: Definition;
  client: HttpClient;
  base: string;
  /** Origins that addresses in answers may lead to. */
  origins: ReadonlySet<string>;
  scope: Pick<TemplateScope, 'config' | 'secrets'>;
}

const paces = new Shared<Pace>();
/** Somebody waits for the answer of a check: it is given soon, be it a no. */
const HURRY = { max_attempts: 2, max_wait_seconds: 5 };

/** @throws ConfigurationError when the definition does not hold together */
export function openApi(ctx: Context, options: { hurry: boolean }): Api {
  const { definition, problem } = parseDefinition(ctx.config.definition);
  if (!definition) throw new ConfigurationError('invalid_definition', problem);
  const { config, secrets = {} } = ctx.config;
  const scope = { config, secrets };
  const base = requireText(definition.base_url, scope).replace(/\/+$/, '');
  const parsed = URL.parse(base);
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    throw new ConfigurationError('invalid_address', `base_url is no http address: ${base}`);
  const origins = new Set([parsed.origin, ...definition.allowed_origins.map((one) => new URL(one).origin)]);
  const { requests_per_second = null, concurrency } = definition.rate_limit;
  const limits = { requests_per_second, concurrency };
  const { timeout_seconds, retries } = definition;
  const client = new HttpClient(ctx, {
    signer: createSigner(ctx, renderTexts(definition.authentication, scope)),
    // All streams of one account at one service count together.
    pace: paces.get(sharedKey(base, limits, secrets), () => new Pace(limits)),
    secrets: Object.values(secrets).filter((value) => typeof value === 'string'),
    origins,
    ...retries,
    timeout_seconds: options.hurry ? Math.min(timeout_seconds, HURRIED_SECONDS) : timeout_seconds,
    ...(options.hurry && HURRY),
    max_bytes: definition.max_page_bytes,
  });
  return { ctx, definition, client, base, origins, scope };
}

const renderTexts = (authentication: Definition['authentication'], scope: TemplateScope): Authentication =>
  Object.fromEntries(
    Object.entries(authentication).map(([name, text]) => [name, requireText(text, scope)]),
  ) as unknown as Authentication;

export function streamOf({ definition }: Pick<Api, 'definition'>, name: string): StreamDefinition {
  const stream = definition.streams.find((one) => one.name === name);
  if (!stream) throw new SchemaChangedError('stream_missing', `The definition has no stream "${name}" any more`);
  return stream;
}

/** The request of one page. @throws ConfigurationError when the path lacks a value */
export function callOf(api: Api, stream: StreamDefinition, at: { scope: TemplateScope; position: Position }): Call {
  const { request, pagination } = stream;
  const { position } = at;
  const size = 'size' in pagination ? pagination.size : null;
  const { token, number, offset } = position;
  const scope = { ...at.scope, page: { token, number, offset, size } };
  const headers: Record<string, string> = { accept: 'application/json' };
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
