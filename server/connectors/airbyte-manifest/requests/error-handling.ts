import { AuthenticationError, ConfigurationError, type ConnectorError, RetryableError } from '../../contract/errors.ts';
import type { Answer } from '../../kits/rest/send.ts';
import { isPassing, statusError } from '../../kits/rest/failures.ts';
import { linkParts } from '../../kits/rest/pagination.ts';
import { askedWait } from '../../kits/rest/retry-after.ts';
import type {
  ACTIONS,
  Backoff,
  DefaultHandler,
  ErrorHandler,
  ResponseFilter,
} from '../components/request-components.ts';
import { compilePattern, firstMatch } from '../interpolation/patterns.ts';
import type { Scope, Templates } from '../interpolation/template.ts';

export interface Verdict {
  action: (typeof ACTIONS)[number];
  /** The manifest's own words. */
  message: string | null;
  failure: ResponseFilter['failure_type'];
}

/** An answer and what templates may see of it. */
export interface Heard {
  answer: Answer;
  /** Its JSON; an empty mapping when it is none. */
  json(): unknown;
}

export interface Judging {
  templates: Templates;
  scope: Scope;
}

/** What templates see of an answer's headers; `link` is taken apart. */
export function headersOf({ headers }: Answer): Record<string, unknown> {
  const plain: Record<string, unknown> = Object.fromEntries(headers);
  return { ...plain, ...withCapitals(headers), link: linkParts(headers.get('link')) };
}

/** Names of headers come in any case, but templates write them their own way. */
const withCapitals = (headers: Headers) =>
  Object.fromEntries(
    Array.from(headers, ([name, value]) => [name.replaceAll(/(^|-)[a-z]/g, (start) => start.toUpperCase()), value]),
  );

/** What the manifest makes of an answer: its filters in order, then what the status means. */
export function judge(handler: ErrorHandler | null | undefined, heard: Heard, judging: Judging): Verdict {
  if (handler?.type !== 'CompositeErrorHandler') return judgeBy(handler ?? null, heard, judging);
  let verdict: Verdict | null = null;
  for (const one of handler.error_handlers) {
    verdict = judge(one, heard, judging);
    if (verdict.action !== 'FAIL' && verdict.action !== 'RATE_LIMITED') return verdict;
  }
  return verdict ?? judgeBy(null, heard, judging);
}

function judgeBy(handler: DefaultHandler | null, heard: Heard, judging: Judging): Verdict {
  const usual = byStatus(heard.answer.status);
  for (const filter of handler?.response_filters ?? []) {
    if (!matches(filter, heard, judging)) continue;
    const action = filter.action ?? usual;
    const scope = { ...judging.scope, response: heard.json(), headers: headersOf(heard.answer) };
    const message = filter.error_message === undefined ? null : judging.templates.text(filter.error_message, scope);
    return { action, message, failure: filter.failure_type };
  }
  return { action: usual, message: null, failure: undefined };
}

function byStatus(status: number): Verdict['action'] {
  if (status >= 200 && status < 300) return 'SUCCESS';
  if (status === 429) return 'RATE_LIMITED';
  return isPassing(status) ? 'RETRY' : 'FAIL';
}

function matches(filter: ResponseFilter, heard: Heard, { templates, scope }: Judging): boolean {
  if (filter.http_codes.includes(heard.answer.status)) return true;
  const { predicate, error_message_contains: part } = filter;
  if (part && heard.answer.status >= 400 && heard.answer.text.includes(part)) return true;
  if (!predicate) return false;
  return templates.truth(predicate, { ...scope, response: heard.json(), headers: headersOf(heard.answer) });
}

/** The error of a verdict that ends the request. `where` and `said` name place and reason. */
export function verdictError(
  verdict: Verdict,
  status: number,
  place: { where: string; message: string },
): ConnectorError {
  const usual = status < 400 ? new ConfigurationError('refused_answer', place.where) : statusError(status, place);
  if (verdict.message === null && verdict.failure === undefined) return usual;
  const text = verdict.message === null ? usual.message : `${place.where} answered ${status}: ${verdict.message}`;
  if (verdict.failure === 'transient_error') return new RetryableError('server_error', text);
  if (status === 401 || status === 403) return new AuthenticationError(usual.code, text);
  return usual instanceof RetryableError
    ? new RetryableError(usual.code, text)
    : new ConfigurationError(usual.code, text);
}

/** All strategies of a handler: the first that knows an answer counts. */
export function strategiesOf(handler: ErrorHandler | null | undefined): Backoff[] {
  if (!handler) return [];
  return handler.type === 'CompositeErrorHandler'
    ? handler.error_handlers.flatMap(strategiesOf)
    : handler.backoff_strategies;
}

const DEFAULT_RETRIES = 5;

export function retriesOf(handler: ErrorHandler | null | undefined, { templates, scope }: Judging): number {
  if (!handler) return DEFAULT_RETRIES;
  if (handler.type === 'CompositeErrorHandler') return retriesOf(handler.error_handlers[0], { templates, scope });
  const { max_retries } = handler;
  const value =
    typeof max_retries === 'string' ? Number(templates.value(max_retries, scope)) : (max_retries ?? DEFAULT_RETRIES);
  return Number.isFinite(value) ? Math.max(0, value) : DEFAULT_RETRIES;
}

/** How long to wait before another attempt, in ms; null when no strategy says so. */
export function waitBy(
  strategies: Backoff[],
  heard: Heard | null,
  at: Judging & { attempt: number; now: Date },
): number | null {
  for (const strategy of strategies) {
    const seconds = secondsOf(strategy, heard, at);
    if (seconds !== null && seconds > 0) return seconds * 1000;
  }
  return heard ? askedWait(heard.answer.headers, at.now) : null;
}

function secondsOf(
  strategy: Backoff,
  heard: Heard | null,
  at: Judging & { attempt: number; now: Date },
): number | null {
  const number = (value: number | string | undefined, otherwise: number) => {
    if (value === undefined) return otherwise;
    return typeof value === 'number' ? value : Number(at.templates.value(value, at.scope));
  };
  if (strategy.type === 'ConstantBackoffStrategy') return number(strategy.backoff_time_in_seconds, 0);
  if (strategy.type === 'ExponentialBackoffStrategy') return number(strategy.factor, 5) * 2 ** (at.attempt - 1);
  const name = at.templates.text(strategy.header, at.scope);
  const header = name === null ? null : (heard?.answer.headers.get(name) ?? null);
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
