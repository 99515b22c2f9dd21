import type { ConnectorContext } from '../../contract/connector.ts';
import { DataError } from '../../contract/errors.ts';
import { messageIn, shortened } from './failures.ts';

/** Fields of an answer that say how a request went. A body with other fields is a record, not an error. */
const ENVELOPE = new Set(
  (
    'ok success status code error errors error_code error_description error_message message messages detail details ' +
    'title type extensions request_id requestid trace_id timestamp'
  ).split(' '),
);
const FAILED = new Set<unknown>(['error', 'fail', 'failed', 'failure']);

const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isFilled = (value: unknown) =>
  value !== undefined &&
  value !== null &&
  value !== false &&
  value !== '' &&
  value !== 0 &&
  (typeof value !== 'object' || hasContent(value));

/** Of a list of records the length is enough: its keys would be texts, one for each record. */
const hasContent = (value: object) => (Array.isArray(value) ? value.length > 0 : Object.keys(value).length > 0);

/** What a body says went wrong, although its status is a success; null: nothing. */
export function errorInBody(json: unknown): string | null {
  if (!isMapping(json)) return null;
  const says = isFilled(json.errors) || isFilled(json.error);
  const failed = json.ok === false || json.success === false || FAILED.has(json.status);
  return says || failed ? (messageIn(json, 0) ?? 'the response says that the request failed') : null;
}

/** Whether a body consists of an error alone. */
const isOnlyAnError = (json: unknown) =>
  isMapping(json) &&
  errorInBody(json) !== null &&
  Object.entries(json).every(([name, value]) => !isFilled(value) || ENVELOPE.has(name.toLowerCase()));

interface Answer {
  /** The parsed body. */
  json: unknown;
  /** What the path of the records leads to; undefined: it leads to nothing. */
  found: unknown;
  /** The path leads to the body itself, so that it is always there. */
  isWhole: boolean;
  url: URL;
}

/**
 * Watches the answers of one read. An answer without the list that should have the records is not an empty list: a
 * service that failed, or moved its records, would empty the destination.
 */
export class CompletenessGuard {
  #answers = 0;
  #missing = 0;
  #first: string | null = null;

  constructor(
    private readonly stream: {
      name: string;
      /** Where the records should be, as messages show it. */
      path: string;
      missing_records: 'fail' | 'empty';
      /** What the user can do about records that are not there, as a sentence. */
      remedy: string;
      /** Removes secrets from what the service says. */
      redact(text: string): string;
    },
  ) {}

  /** @throws DataError when the answer is an error with the status of a success */
  check({ json, found, isWhole, url }: Answer): void {
    this.#answers += 1;
    const where = `${url.host}${url.pathname}`;
    const { name } = this.stream;
    const hasNone = !isFilled(found);
    const failure = (isWhole ? isOnlyAnError(json) : hasNone) ? errorInBody(json) : null;
    if (failure !== null)
      throw new DataError(
        'error_in_response',
        `${name}: ${where} returned an error with the status of a success: ${shortened(failure, this.stream.redact)}`,
      );
    if (found !== undefined || isWhole || !isFilled(json)) return;
    this.#missing += 1;
    this.#first ??= where;
  }

  /** No answer so far has the list of records: what was read is not known to be complete. */
  get isBlind(): boolean {
    return this.#missing > 0 && this.#missing === this.#answers && this.stream.missing_records === 'fail';
  }

  /** At the end of a read. @throws DataError when no answer has the list of records */
  finish(ctx: Pick<ConnectorContext<unknown>, 'warn'>): void {
    if (this.#missing === 0 || this.stream.missing_records === 'empty') return;
    const { name, path, remedy } = this.stream;
    if (this.isBlind) {
      const which = this.#answers === 1 ? 'the response' : `all ${this.#answers} responses`;
      const has = this.#answers === 1 ? 'has' : 'have';
      throw new DataError(
        'records_missing',
        `${name}: ${which} of ${this.#first} ${has} no records at ${path}. ${remedy}`,
      );
    }
    ctx.warn(
      'records_missing',
      `${name}: ${this.#missing} of ${this.#answers} responses have nothing at ${path}, and count as empty. The first one is from ${this.#first}`,
    );
  }
}

/** The guards of the streams that a read touches: its own and its parents. */
export class CompletenessGuards {
  readonly #guards = new Map<string, CompletenessGuard>();

  of(stream: ConstructorParameters<typeof CompletenessGuard>[0]): CompletenessGuard {
    const known = this.#guards.get(stream.name) ?? new CompletenessGuard(stream);
    this.#guards.set(stream.name, known);
    return known;
  }

  /** Whether a state may not be stored yet: the read may still turn out to be incomplete. */
  get areBlind(): boolean {
    return [...this.#guards.values()].some(({ isBlind }) => isBlind);
  }

  /** @throws DataError when a stream of the read was not there */
  finish(ctx: Pick<ConnectorContext<unknown>, 'warn'>): void {
    for (const guard of this.#guards.values()) guard.finish(ctx);
  }
}
