import { AuthenticationError, ConfigurationError, type ConnectorError, RetryableError } from '../../contract/errors.ts';
import type { HttpResponse } from '../../kits/rest/send.ts';
import { isTransient, statusError } from '../../kits/rest/failures.ts';
import { linksByRelation } from '../../kits/rest/link-header.ts';
import { requestedWait } from '../../kits/rest/retry-after.ts';
import type {
  ACTIONS,
  Backoff,
  DefaultHandler,
  ErrorHandler,
  ResponseFilter,
} from '../components/request-components.ts';
import { compilePattern, firstMatch } from '../interpolation/patterns.ts';
import type { Interpolation } from '../interpolation/template.ts';
import { inPython, type PythonSession } from '../python/session.ts';

/** What the manifest decides about a response. */
export interface ErrorResolution {
  action: (typeof ACTIONS)[number];
  /** The message of the manifest. */
  message: string | null;
  failure: ResponseFilter['failure_type'] | null;
}

/** A response as templates see it. */
export interface SeenResponse {
  response: HttpResponse;
  /** Its JSON; an empty mapping when the body is not JSON. */
  json(): unknown;
  /** The manifest says to ignore it. */
  isIgnored: boolean;
  /** The manifest says to restart with the first page. */
  resets?: boolean;
}

/** A response as custom components get it. */
export const pythonResponse = ({ status, headers, text, url }: HttpResponse): Record<string, unknown> => ({
  status,
  headers: Object.fromEntries(headers),
  text,
  url: url.href,
});

/** The headers as templates see them, with `link` parsed. */
export function headersOf({ headers }: HttpResponse): Record<string, unknown> {
  const plain: Record<string, unknown> = Object.fromEntries(headers);
  return { ...plain, ...withCapitals(headers), link: linksByRelation(headers.get('link')) };
}

/** Headers are case-insensitive, but templates look them up by exact name. */
const withCapitals = (headers: Headers) =>
  Object.fromEntries(
    Array.from(headers, ([name, value]) => [name.replaceAll(/(^|-)[a-z]/g, (start) => start.toUpperCase()), value]),
  );

export interface Handling extends Interpolation {
  /** What custom handlers and backoff strategies run in. */
  python: PythonSession | null;
}

/** Applies the response filters in order, then the default for the status. */
export async function interpretResponse(
  handler: ErrorHandler | null | undefined,
  seen: SeenResponse,
  handling: Handling,
): Promise<ErrorResolution> {
  if (handler?.type !== 'CompositeErrorHandler') {
    if (!handler?.python) return interpretBy(handler ?? null, seen, handling);
    const args = [pythonResponse(seen.response)];
    const found = await inPython(handling.python).call(handler.python, 'interpret', args);
    return found as ErrorResolution;
  }
  let resolution: ErrorResolution | null = null;
  for (const one of handler.error_handlers) {
    resolution = await interpretResponse(one, seen, handling);
    if (resolution.action !== 'FAIL' && resolution.action !== 'RATE_LIMITED') return resolution;
  }
  return resolution ?? interpretBy(null, seen, handling);
}

function interpretBy(
  handler: DefaultHandler | null,
  seen: SeenResponse,
  interpolation: Interpolation,
): ErrorResolution {
  for (const filter of handler?.response_filters ?? []) {
    const found = filtered(filter, seen, interpolation);
    if (found) return found;
  }
  return { action: defaultAction(seen.response.status), message: null, failure: undefined };
}

/** What a filter decides; null: it does not match. */
export function filtered(
  filter: ResponseFilter,
  seen: SeenResponse,
  interpolation: Interpolation,
): ErrorResolution | null {
  if (!matches(filter, seen, interpolation)) return null;
  const action = filter.action ?? defaultAction(seen.response.status);
  const scope = { ...interpolation.scope, response: seen.json(), headers: headersOf(seen.response) };
  const message = filter.error_message === undefined ? null : interpolation.templates.text(filter.error_message, scope);
  return { action, message, failure: filter.failure_type };
}

function defaultAction(status: number): ErrorResolution['action'] {
  if (status >= 200 && status < 300) return 'SUCCESS';
  if (status === 429) return 'RATE_LIMITED';
  return isTransient(status) ? 'RETRY' : 'FAIL';
}

function matches(filter: ResponseFilter, seen: SeenResponse, { templates, scope }: Interpolation): boolean {
  if (filter.http_codes.includes(seen.response.status)) return true;
  const { predicate, error_message_contains: part } = filter;
  if (part && seen.response.status >= 400 && seen.response.text.includes(part)) return true;
  if (!predicate) return false;
  return templates.truth(predicate, { ...scope, response: seen.json(), headers: headersOf(seen.response) });
}

/** The error when the request fails for good. `where` is the request, `message` the service's own words. */
export function resolutionError(
  resolution: ErrorResolution,
  status: number,
  place: { where: string; message: string },
): ConnectorError {
  const standard =
    status < 400
      ? new ConfigurationError('refused_answer', `${place.where} returned a response that the manifest rejects`)
      : statusError(status, place);
  if (resolution.message === null && (resolution.failure ?? null) === null) return standard;
  const text =
    resolution.message === null ? standard.message : `${place.where} returned ${status}: ${resolution.message}`;
  if (resolution.failure === 'transient_error') return new RetryableError('server_error', text);
  if (status === 401 || status === 403) return new AuthenticationError(standard.code, text);
  return standard instanceof RetryableError
    ? new RetryableError(standard.code, text)
    : new ConfigurationError(standard.code, text);
}

/** All backoff strategies of a handler. The first one that returns a pause applies. */
export function strategiesOf(handler: ErrorHandler | null | undefined): Backoff[] {
  if (!handler) return [];
  return handler.type === 'CompositeErrorHandler'
    ? handler.error_handlers.flatMap(strategiesOf)
    : handler.backoff_strategies;
}

const DEFAULT_RETRIES = 5;

export function retriesOf(handler: ErrorHandler | null | undefined, { templates, scope }: Interpolation): number {
  if (!handler) return DEFAULT_RETRIES;
  if (handler.type === 'CompositeErrorHandler') return retriesOf(handler.error_handlers[0], { templates, scope });
  const { max_retries } = handler;
  const value =
    typeof max_retries === 'string' ? Number(templates.value(max_retries, scope)) : (max_retries ?? DEFAULT_RETRIES);
  return Number.isFinite(value) ? Math.max(0, value) : DEFAULT_RETRIES;
}

/** The pause before the next attempt, in ms; null when no strategy and no header sets one. */
export async function waitBy(
  strategies: Backoff[],
  seen: SeenResponse | null,
  at: Handling & { attempt: number; now: Date },
): Promise<number | null> {
  for (const strategy of strategies) {
    const seconds =
      strategy.type === 'PythonBackoff'
        ? await customWait(strategy.component, seen, at)
        : secondsOf(strategy, seen, at);
    if (seconds !== null && seconds > 0) return seconds * 1000;
  }
  return seen ? requestedWait(seen.response.headers, at.now) : null;
}

async function customWait(
  component: unknown,
  seen: SeenResponse | null,
  { python, attempt }: Handling & { attempt: number },
): Promise<number | null> {
  const args = [seen && pythonResponse(seen.response), attempt];
  const found = await inPython(python).call(component, 'backoff', args);
  return found === null ? null : Number(found);
}

function secondsOf(
  strategy: Exclude<Backoff, { type: 'PythonBackoff' }>,
  seen: SeenResponse | null,
  at: Interpolation & { attempt: number; now: Date },
): number | null {
  const number = (value: number | string | undefined, otherwise: number) => {
    if (value === undefined) return otherwise;
    return typeof value === 'number' ? value : Number(at.templates.value(value, at.scope));
  };
  if (strategy.type === 'ConstantBackoffStrategy') return number(strategy.backoff_time_in_seconds, 0);
  if (strategy.type === 'ExponentialBackoffStrategy') return number(strategy.factor, 5) * 2 ** (at.attempt - 1);
  const name = at.templates.text(strategy.header, at.scope);
  const header = name === null ? null : (seen?.response.headers.get(name) ?? null);
  const text = header === null || !strategy.regex ? header : matched(header, strategy.regex);
  const value = text === null || text.trim() === '' ? Number.NaN : Number(text);
  if (strategy.type === 'WaitTimeFromHeader') {
    if (!Number.isFinite(value)) return null;
    const most = number(strategy.max_waiting_time_in_seconds, Infinity);
    return value > most ? Infinity : value;
  }
  const wait = Number.isFinite(value) ? value - at.now.getTime() / 1000 : null;
  const least = number(strategy.min_wait, 0);
  return wait === null ? least || null : Math.max(wait, least);
}

function matched(text: string, pattern: string): string | null {
  const compiled = compilePattern(pattern);
  return compiled && firstMatch(compiled, text);
}
