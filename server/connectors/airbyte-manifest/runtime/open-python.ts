import { createRedactor } from '../../../platform/redact.ts';
import { ConfigurationError, ConnectorError } from '../../contract/errors.ts';
import { isTransient } from '../../kits/rest/failures.ts';
import { pause, RateLimiter } from '../../kits/rest/rate-limiter.ts';
import { Exchange, type HttpRequest } from '../../kits/rest/send.ts';
import { fixedSigner, type Signer } from '../../kits/rest/signing/authentication.ts';
import { Authenticator } from '../components/request-components.ts';
import type { Interpolation } from '../interpolation/template.ts';
import { typedValue } from '../interpolation/typed-value.ts';
import { type PythonHost, PythonSession, type RequestTrouble } from '../python/session.ts';
import { type WireRequest, wireOf } from '../python/signer.ts';
import type { Context } from './runtime.ts';

const MAX_SLEEP_SECONDS = 600;
const CONCURRENCY = 10;

export interface PythonParts extends Interpolation {
  ctx: Context;
  source: string;
  timeout_seconds: number;
  /** For an authenticator of the manifest that a component contains. */
  signerOf(authenticator: Authenticator): Signer;
}

/** The session in which the custom components of a manifest run. Its process starts with the first call. */
export function openPython(parts: PythonParts): PythonSession {
  const { ctx, source, scope } = parts;
  const redactor = createRedactor(textsIn(ctx.config.secrets));
  const options = {
    source,
    config: scope.config as Record<string, unknown>,
    signal: ctx.signal,
    redact: (text: string) => redactor.text(text),
  };
  const exchange = new Exchange(ctx, {
    signer: fixedSigner(() => ({})),
    limiter: new RateLimiter({ requests_per_second: null, concurrency: CONCURRENCY }),
    secrets: ctx.config.secrets,
    origins: new Set(),
    timeout_seconds: parts.timeout_seconds,
    max_bytes: ctx.config.max_page_bytes,
  });
  return new PythonSession(options, (trouble) => hostOf(parts, exchange, trouble));
}

function hostOf(
  { templates, scope, signerOf, ctx }: PythonParts,
  exchange: Exchange,
  trouble: RequestTrouble,
): PythonHost {
  return {
    evaluate: async (kind: string, text: string, given: Record<string, unknown>) => {
      const own = { ...scope, ...given };
      if (kind === 'truth') return templates.truth(text, own);
      return typedValue(text, kind, { templates, scope: own });
    },
    request: async (wire: WireRequest) => await sent(exchange, requestOf(wire), trouble),
    sign: async (component: unknown, wire: WireRequest) => {
      const signer = signerOf(Authenticator.parse(component));
      const request = requestOf(wire);
      const signed = await signer.sign(request, await signer.current());
      return wireOf({ ...request, ...signed, body: signed.body ?? request.body });
    },
    sleep: async (seconds: number) => await pause(Math.min(seconds, MAX_SLEEP_SECONDS) * 1000, ctx.signal),
  };
}

function requestOf({ method, url, headers, body }: WireRequest): HttpRequest {
  const parsed = URL.parse(url);
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    throw new ConfigurationError('invalid_address', `Not an http or https URL: ${url.slice(0, 200)}`);
  const lowered = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return { method, url: parsed, headers: Object.fromEntries(lowered) as Record<string, string>, body };
}

/** A component gets every response, and an exception of its own kind when there is none. */
async function sent(exchange: Exchange, request: HttpRequest, trouble: RequestTrouble): Promise<unknown> {
  try {
    const { status, headers, text, url } = await exchange.send(request, null);
    trouble.kind = isTransient(status) ? 'transient' : status === 401 || status === 403 ? 'refused' : null;
    return { status, headers: Object.fromEntries(headers), text, url: url.href };
  } catch (error) {
    if (!(error instanceof ConnectorError) || !error.retryable) throw error;
    trouble.kind = 'transient';
    return { failed: error.message };
  }
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
