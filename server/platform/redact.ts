export const REDACTED = '[redacted]';

/** Headers that may be shown as they are; the value of any other is replaced. */
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

const SECRET_NAME = /token|secret|passw|pwd|key|signature|auth|credential|cookie|session|^code$/i;

/** A form of secrets, and texts of which one stands, in lower case, wherever it does: those are looked for first. */
interface Form {
  hints: string[];
  pattern: RegExp;
}

/** What is a secret by its form, wherever it stands. */
const SECRET_FORMS: Form[] = [
  { hints: ['bearer', 'basic'], pattern: /\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi },
  { hints: ['dpm_'], pattern: /\bdpm_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\b/g },
  { hints: ['eyj'], pattern: /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g },
  {
    hints: ['-----begin '],
    pattern: /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g,
  },
  { hints: ['password'], pattern: /(?<=\bpassword\s+)'(?:[^']|'')*'/gi },
  { hints: ['://'], pattern: /(?<=:\/\/)[^/\s:@]*:[^/\s@]+(?=@)/g },
];
/** `name=value` and `"name": "value"` where the name says that the value is secret. */
const NAMED_IN_TEXT: Form = {
  hints: ['token', 'secret', 'passw', 'pwd', 'apikey', 'api_key', 'api-key', 'signature', 'credential'],
  pattern:
    /((?:"|\b)[\w-]*(?:token|secret|passw(?:or)?d|pwd|api[_-]?key|signature|credential)[\w-]*"?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s&,;}"']+)/gi,
};

/** Too short to be told from ordinary text: replacing every `1` of a log would help nobody. */
const SHORTEST_SECRET = 4;

export interface Redactor {
  headers(headers: Record<string, string>): Record<string, string>;
  query(query: Record<string, string>): Record<string, string>;
  text(text: string): string;
  url(url: string): string;
  /** How many replacements were made since the last call. */
  takeCount(): number;
}

/** Replaces secrets by name, by form, and each of `secrets` by value: as it is, URL-encoded, Base64 and JSON-escaped. */
export function createRedactor(secrets: string[]): Redactor {
  const values = [...new Set(secrets.filter((secret) => secret.length >= SHORTEST_SECRET).flatMap(spellings))];
  values.sort((a, b) => b.length - a.length);
  const byValue = values.length > 0 ? new RegExp(values.map(escapeRegExp).join('|'), 'g') : null;
  let count = 0;
  const hit = () => {
    count += 1;
    return REDACTED;
  };
  const text = (input: string) => {
    // Most texts have none, and to look for words is far cheaper than for patterns.
    let output = byValue && values.some((value) => input.includes(value)) ? input.replace(byValue, hit) : input;
    const lowered = output.toLowerCase();
    const mayHave = ({ hints }: Form) => hints.some((hint) => lowered.includes(hint));
    for (const form of SECRET_FORMS) if (mayHave(form)) output = output.replace(form.pattern, hit);
    if (!mayHave(NAMED_IN_TEXT)) return output;
    return output.replace(NAMED_IN_TEXT.pattern, (whole, name: string, value: string) => {
      if (value.includes(REDACTED)) return whole;
      hit();
      return value.startsWith('"') ? `${name}"${REDACTED}"` : `${name}${REDACTED}`;
    });
  };
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

function spellings(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const base64 = Buffer.from(secret).toString('base64');
  return [
    secret,
    encodeURIComponent(secret),
    json,
    base64,
    base64.replace(/=+$/, ''),
    Buffer.from(secret).toString('base64url'),
  ];
}

const escapeRegExp = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
