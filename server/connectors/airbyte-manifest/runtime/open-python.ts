import { createRedactor } from '../../../platform/redaction/redact.ts';
import { ConfigurationError, ConnectorError } from '../../contract/errors.ts';
import { isTransient } from '../../kits/rest/failures.ts';
import { pause, RateLimiter } from '../../kits/rest/rate-limiter.ts';
import { Exchange } from '../../kits/rest/send.ts';
import { fixedSigner } from '../../kits/rest/signing/authentication.ts';
import { parseYaml } from '../../kits/rest/document.ts';
import { type JwtClaims, signJwt } from '../../kits/rest/signing/jwt.ts';
import type { PythonFiles } from '../components/python-source.ts';
import { Authenticator, HttpRequester, ResponseFilter } from '../components/request-components.ts';
import { seenResponse } from '../requests/client.ts';
import { filtered, pythonResponse, type SeenResponse } from '../requests/error-handling.ts';
import type { Interpolation, Scope } from '../interpolation/template.ts';
import { typedValue } from '../interpolation/typed-value.ts';
import type { PythonHost, RequestTrouble } from '../python/conversation.ts';
import { PythonSession } from '../python/session.ts';
import { type PythonSlice, requestOf, sliceOf, wireOf, type WireRequest, type WireResponse } from '../python/wire.ts';
import type { HttpRequest } from '../../kits/rest/request.ts';
import type { Signer } from '../../kits/rest/signing/signer.ts';
import type { Context } from './settings.ts';

const MAX_SLEEP_SECONDS = 600;
const CONCURRENCY = 10;

export interface PythonParts extends Interpolation {
  ctx: Context;
  files: PythonFiles;
  timeout_seconds: number;
  /** For an authenticator of the manifest that a component contains. */
  signerOf(authenticator: Authenticator): Signer;
  /** Sends by a requester of the manifest that a component contains; null: the response counts as none. */
  send(requester: HttpRequester, scope: Scope): Promise<SeenResponse | null>;
}

/** The session in which the custom components of a manifest run. Its process starts with the first call. */
export function openPython(parts: PythonParts): PythonSession {
  const { ctx, files, scope } = parts;
  const redactor = createRedactor(textsIn(ctx.config.secrets));
  const options = {
    files,
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
  { templates, scope, signerOf, send, ctx }: PythonParts,
  exchange: Exchange,
  trouble: RequestTrouble,
): PythonHost {
  return {
    evaluate: async (kind: string, text: string, given: Record<string, unknown>) => {
      const { slice, ...rest } = given;
      const own = { ...scope, ...rest, ...(slice !== undefined && sliceOf(slice as PythonSlice)) };
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
    match: async (component: unknown, { status, headers, text, url }: WireResponse) => {
      const response = { status, headers: new Headers(headers), text, bytes: text.length, url: new URL(url) };
      return filtered(ResponseFilter.parse(component), seenResponse(response), { templates, scope });
    },
    declared: async (component: unknown, slice: PythonSlice, next_page_token: unknown) => {
      const seen = await send(HttpRequester.parse(component), { ...sliceOf(slice), next_page_token });
      return seen && pythonResponse(seen.response);
    },
    jwt: async (claims: JwtClaims) => signJwt(claims),
    yaml: async (text: string) => yamlValue(text),
    sleep: async (seconds: number) => await pause(Math.min(seconds, MAX_SLEEP_SECONDS) * 1000, ctx.signal),
  };
}

function yamlValue(text: string): unknown {
  const { document, problem } = parseYaml(text, { lenient: true });
  if (!document) throw new ConfigurationError('invalid_yaml', `components.py reads YAML that is not valid: ${problem}`);
  return document.value;
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
