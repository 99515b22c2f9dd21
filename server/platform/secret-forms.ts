/**
 * Finds secrets by their form, and by the name they are given in a text. The texts come from other servers, so each
 * search is linear: it never reads a character again that an earlier, failed match has read.
 */
export interface Found {
  start: number;
  end: number;
  /** The value is in double quotes, which are kept. */
  quoted: boolean;
}

interface Finder {
  /** Words in lower case. A text without any of them contains no such secret. */
  hints: string[];
  find(text: string, lowered: string): Found[];
}

/** Everything in the text that looks like a secret, in order and without overlaps. */
export function findSecrets(text: string): Found[] {
  // Searching for words is far cheaper than for forms, and most texts contain none.
  const lowered = text.toLowerCase();
  const found = FINDERS.filter(({ hints }) => hints.some((hint) => lowered.includes(hint))).flatMap(({ find }) =>
    find(text, lowered),
  );
  return withoutOverlaps(found.toSorted((a, b) => a.start - b.start || b.end - a.end));
}

function withoutOverlaps(found: Found[]): Found[] {
  const apart: Found[] = [];
  for (const one of found) {
    const last = apart.at(-1);
    if (last && one.start < last.end) last.end = Math.max(last.end, one.end);
    else apart.push(one);
  }
  return apart;
}

/** `Bearer …` and `Basic …`. */
function authorizations(text: string, lowered: string): Found[] {
  return [...lowered.matchAll(/\b(?:bearer|basic)(?=\s)/g)].flatMap(({ index, 0: scheme }) => {
    const from = skip(text, index + scheme.length, isSpace);
    const end = skip(text, from, isCredential);
    return end - from >= 8 ? [{ start: index, end, quoted: false }] : [];
  });
}

/** This service's own keys. */
function apiKeys(text: string): Found[] {
  return [...text.matchAll(/\bdpm_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\b/g)].map(({ index, 0: key }) => ({
    start: index,
    end: index + key.length,
    quoted: false,
  }));
}

function jsonWebTokens(text: string): Found[] {
  const found: Found[] = [];
  for (let at = text.indexOf('eyJ'); at >= 0; at = text.indexOf('eyJ', at)) {
    const header = skip(text, at, isTokenPart);
    const payload = text[header] === '.' ? skip(text, header + 1, isTokenPart) : header;
    const isToken = header - at >= 11 && payload - header > 8 && text[payload] === '.';
    const end = isToken ? skip(text, payload + 1, isTokenPart) : header;
    if (isToken) found.push({ start: at, end, quoted: false });
    // Every other start in this run of characters ends at the same place, so it is not a token either.
    at = end;
  }
  return found;
}

const PEM_BEGIN = /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----/g;
const PEM_END = /-----END [A-Z ]{0,40}PRIVATE KEY-----/g;

function privateKeys(text: string): Found[] {
  const found: Found[] = [];
  const ends = [...text.matchAll(PEM_END)].map(({ index, 0: line }) => index + line.length);
  let next = 0;
  let covered = 0;
  for (const { index, 0: line } of text.matchAll(PEM_BEGIN)) {
    if (index < covered) continue;
    while (next < ends.length && ends[next]! <= index + line.length) next += 1;
    // A truncated key is still a key.
    covered = ends[next] ?? text.length;
    found.push({ start: index, end: covered, quoted: false });
  }
  return found;
}

/** `password '…'` in SQL. */
function sqlPasswords(text: string, lowered: string): Found[] {
  const found: Found[] = [];
  let covered = 0;
  for (const { index, 0: word } of lowered.matchAll(/\bpassword(?=\s)/g)) {
    const start = skip(text, index + word.length, isSpace);
    if (index < covered || text[start] !== "'") continue;
    covered = closingQuote(text, start);
    found.push({ start, end: covered, quoted: false });
  }
  return found;
}

/** `user:password` before the `@` of an address. */
function urlCredentials(text: string): Found[] {
  const found: Found[] = [];
  for (let at = text.indexOf('://'); at >= 0; at = text.indexOf('://', at)) {
    const start = at + 3;
    // The password can contain `@`: the last one before the path separates it from the host.
    const authority = skip(text, start, isAuthority);
    const name = text.slice(start, authority);
    const colon = name.indexOf(':');
    const end = name.lastIndexOf('@');
    if (colon >= 0 && end > colon) found.push({ start, end: start + end, quoted: false });
    at = Math.max(authority, start);
  }
  return found;
}

const NAMES = /token|secret|passw(?:or)?d|pwd|api[_-]?key|signature|credential/g;
const NAME_HINTS = ['token', 'secret', 'passw', 'pwd', 'apikey', 'api_key', 'api-key', 'signature', 'credential'];

/** `name=value`, `name: value` and `"name": "value"` with a name that suggests a secret. */
function namedValues(text: string, lowered: string): Found[] {
  const found: Found[] = [];
  let covered = 0;
  for (const { index } of lowered.matchAll(NAMES)) {
    if (index < covered) continue;
    const word = skip(text, index, isTokenPart);
    covered = word;
    const quote = text[word] === '\\' ? word + 1 : word;
    const name = text[quote] === '"' || text[quote] === "'" ? quote + 1 : word;
    const sign = skip(text, name, isSpace);
    if (text[sign] !== ':' && text[sign] !== '=') continue;
    const start = skip(text, sign + 1, isSpace);
    const value = valueAt(text, start);
    if (!value) continue;
    covered = value.end;
    found.push(value);
  }
  return found;
}

function valueAt(text: string, start: number): Found | null {
  const quote = text[start];
  if (quote === '"') {
    let end = start + 1;
    while (end < text.length && text[end] !== '"') end += text[end] === '\\' ? 2 : 1;
    return { start, end: Math.min(end + 1, text.length), quoted: true };
  }
  if (quote === "'") {
    const end = text.indexOf("'", start + 1);
    return { start, end: end < 0 ? text.length : end + 1, quoted: false };
  }
  const end = skip(text, start, isBare);
  return end > start ? { start, end, quoted: false } : null;
}

/** The offset after the quote that closes the SQL literal at `start`. A doubled quote is part of the literal. */
function closingQuote(text: string, start: number): number {
  for (let at = text.indexOf("'", start + 1); at >= 0; at = text.indexOf("'", at + 2)) {
    if (text[at + 1] !== "'") return at + 1;
  }
  return text.length;
}

function skip(text: string, from: number, belongs: (code: number) => boolean): number {
  let at = from;
  while (at < text.length && belongs(text.charCodeAt(at))) at += 1;
  return at;
}

const table = (pattern: RegExp) => {
  const ascii = Uint8Array.from({ length: 128 }, (_, code) => Number(pattern.test(String.fromCharCode(code))));
  return { ascii, others: pattern.test('ü') };
};
const belongsTo = (pattern: RegExp) => {
  const { ascii, others } = table(pattern);
  return (code: number) => (code < 128 ? ascii[code] === 1 : others);
};
const isSpace = belongsTo(/\s/);
const isTokenPart = belongsTo(/[\w-]/);
const isCredential = belongsTo(/[\w.~+/=-]/);
const isAuthority = belongsTo(/[^/\s?#"'<>]/);
const isBare = belongsTo(/[^\s&,;}"']/);

const FINDERS: readonly Finder[] = [
  { hints: ['bearer', 'basic'], find: authorizations },
  { hints: ['dpm_'], find: apiKeys },
  { hints: ['eyj'], find: jsonWebTokens },
  { hints: ['-----begin '], find: privateKeys },
  { hints: ['password'], find: sqlPasswords },
  { hints: ['://'], find: urlCredentials },
  { hints: NAME_HINTS, find: namedValues },
];
