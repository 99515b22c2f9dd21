import { MIN_VALUE_LENGTH, valueReplacer } from './find-values.ts';
import { REDACTED, replaceForms } from './secret-forms.ts';
import { secretSpellings } from './secret-spellings.ts';

export { REDACTED };

/** Headers whose values can be shown; the values of all others are replaced. */
const PLAIN_HEADERS = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'accept-ranges',
  'age',
  'allow',
  'cache-control',
  'connection',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-length',
  'content-range',
  'content-type',
  'date',
  'etag',
  'expires',
  'host',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'last-modified',
  'link',
  'location',
  'pragma',
  'range',
  'ratelimit',
  'ratelimit-limit',
  'ratelimit-policy',
  'ratelimit-remaining',
  'ratelimit-reset',
  'retry-after',
  'server',
  'transfer-encoding',
  'user-agent',
  'vary',
  'via',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-request-id',
  'x-total-count',
]);

const SECRET_NAME = /token|secret|passw|pwd|key|signature|auth|credential|cookie|session|^code$|^sig$/i;

export interface Redactor {
  headers(headers: Record<string, string>): Record<string, string>;
  query(query: Record<string, string>): Record<string, string>;
  text(text: string): string;
  url(url: string): string;
  /** Number of replacements since the last call. */
  takeCount(): number;
}

/** Like `createRedactor`, for secrets that become known later. `read` returns the same list until it has changed. */
export function growingRedactor(read: () => readonly string[]): Redactor {
  let [known, redactor] = [read(), createRedactor([...read()])];
  let earlier = 0;
  const current = () => {
    const now = read();
    if (now !== known) {
      earlier += redactor.takeCount();
      [known, redactor] = [now, createRedactor([...now])];
    }
    return redactor;
  };
  return {
    text: (text) => current().text(text),
    url: (url) => current().url(url),
    headers: (headers) => current().headers(headers),
    query: (query) => current().query(query),
    takeCount() {
      const taken = earlier + redactor.takeCount();
      earlier = 0;
      return taken;
    },
  };
}

/** Replaces secrets by name, by form, and each of `secrets` by value, in every spelling of `secretSpellings`. */
export function createRedactor(secrets: string[]): Redactor {
  let count = 0;
  const hit = () => {
    count += 1;
    return REDACTED;
  };
  // A shorter secret cannot be distinguished from ordinary text: replacing every `1` would make the log useless.
  const long = secrets.filter((secret) => secret.length >= MIN_VALUE_LENGTH);
  const withoutValues = valueReplacer(long.flatMap(secretSpellings), hit);
  const text = (input: string) => replaceForms(withoutValues(input), hit);
  const named = (entries: Record<string, string>, isPlain: (name: string) => boolean) =>
    Object.fromEntries(
      Object.entries(entries).map(([name, value]) => [name, isPlain(name) ? text(value) : value === '' ? '' : hit()]),
    );
  return {
    text,
    url: (input) => text(redactQuery(input, hit)),
    headers: (headers) => named(headers, (name) => PLAIN_HEADERS.has(name.toLowerCase())),
    query: (query) => named(query, (name) => !SECRET_NAME.test(name)),
    takeCount() {
      const taken = count;
      count = 0;
      return taken;
    },
  };
}

function redactQuery(url: string, hit: () => string): string {
  const start = url.indexOf('?');
  if (start < 0) return url;
  const pairs = url.slice(start + 1).split('&');
  const cleaned = pairs.map((pair) => {
    const name = pair.split('=', 1)[0] ?? '';
    return SECRET_NAME.test(name) && pair.length > name.length + 1 ? `${name}=${hit()}` : pair;
  });
  return `${url.slice(0, start)}?${cleaned.join('&')}`;
}
