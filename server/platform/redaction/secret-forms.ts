/**
 * Finds secrets by their form, and by the name they are given in a text. The texts come from other servers, so the
 * search is linear and cheap for each of them: one pass looks for the words that secrets begin with or stand behind, and
 * a finder never reads a character again that it has read.
 */
interface Span {
  start: number;
  end: number;
}

interface Finder {
  /** In lower case, of at least three ASCII characters. The case of the text does not matter. */
  words: string[];
  /** Adds what the word at `at` belongs to. Returns the offset before which it need not be called again. */
  find(text: string, at: number, wordEnd: number, spans: Span[]): number;
}

interface Mark extends Pick<Finder, 'find'> {
  word: string;
  finder: number;
}

/** Stands in for a secret. A value that is nothing else is not replaced again. */
export const REDACTED = '[redacted]';

/** Replaces everything in the text that looks like a secret. Quotes around a value are kept. */
export function replaceForms(text: string, replacement: () => string): string {
  let output = '';
  let copied = 0;
  const spans = findSpans(text);
  for (let at = 0; at < spans.length; at += 1) {
    const { start } = spans[at]!;
    let { end } = spans[at]!;
    for (; at + 1 < spans.length && spans[at + 1]!.start < end; at += 1) end = Math.max(end, spans[at + 1]!.end);
    output += text.slice(copied, start) + replacement();
    copied = end;
  }
  return copied === 0 ? text : output + text.slice(copied);
}

const KEYS = 1 << 15;
/** Each step shifts by 5 of 15 bits, so the key depends on the last three characters alone, and not on their case. */
const nextKey = (key: number, code: number) => ((key << 5) | (code & 31)) & (KEYS - 1);

function findSpans(text: string): Span[] {
  const spans: Span[] = [];
  const done = new Int32Array(FINDERS.length);
  let key = 0;
  for (let last = 0; last < text.length; last += 1) {
    key = nextKey(key, text.charCodeAt(last));
    const group = GROUP_OF_KEY[key]!;
    if (group === 0) continue;
    const at = last - 2;
    for (const { word, finder, find } of GROUPS[group]!) {
      if (at >= done[finder]! && hasWord(text, at, word)) done[finder] = find(text, at, at + word.length, spans);
    }
  }
  return spans;
}

function hasWord(text: string, start: number, word: string): boolean {
  for (let at = 0; at < word.length; at += 1) {
    const code = text.charCodeAt(start + at);
    const lower = code >= 65 && code <= 90 ? code + 32 : code;
    if (lower !== word.charCodeAt(at)) return false;
  }
  return true;
}

/** Keeps the order of starts: a value may have been added before a form that is found in its name. */
function add(spans: Span[], text: string, start: number, end: number): void {
  if (end <= start || (end - start === REDACTED.length && text.startsWith(REDACTED, start))) return;
  let at = spans.length;
  while (at > 0 && spans[at - 1]!.start > start) at -= 1;
  if (at === spans.length) spans.push({ start, end });
  else spans.splice(at, 0, { start, end });
}

/** `Bearer …` and `Basic …`. */
function authorization(text: string, at: number, wordEnd: number, spans: Span[]): number {
  if (has(WORD, text.charCodeAt(at - 1))) return wordEnd;
  const from = skip(text, wordEnd, SPACE);
  const end = from === wordEnd ? from : skip(text, from, CREDENTIAL);
  if (end - from >= 8) add(spans, text, at, end);
  return wordEnd;
}

const API_KEY = /\bdpm_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\b/y;

/** This service's own keys. */
function apiKey(text: string, at: number, wordEnd: number, spans: Span[]): number {
  API_KEY.lastIndex = at;
  if (!API_KEY.test(text)) return wordEnd;
  add(spans, text, at, API_KEY.lastIndex);
  return API_KEY.lastIndex;
}

function jsonWebToken(text: string, at: number, wordEnd: number, spans: Span[]): number {
  if (!text.startsWith('eyJ', at)) return wordEnd;
  const header = skip(text, at, TOKEN_PART);
  const payload = text[header] === '.' ? skip(text, header + 1, TOKEN_PART) : header;
  const isToken = header - at >= 11 && payload - header > 8 && text[payload] === '.';
  // Every other start in this run of characters ends at the same place, so it is not a token either.
  if (!isToken) return header;
  const end = skip(text, payload + 1, TOKEN_PART);
  add(spans, text, at, end);
  return end;
}

const PEM_BEGIN = /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----/y;
const PEM_END = /-----END [A-Z ]{0,40}PRIVATE KEY-----/g;

function privateKey(text: string, at: number, wordEnd: number, spans: Span[]): number {
  const start = at - '-----'.length;
  PEM_BEGIN.lastIndex = Math.max(start, 0);
  if (!PEM_BEGIN.test(text)) return wordEnd;
  PEM_END.lastIndex = PEM_BEGIN.lastIndex;
  // A truncated key is still a key.
  const end = PEM_END.test(text) ? PEM_END.lastIndex : text.length;
  add(spans, text, start, end);
  return end;
}

/** `password '…'` in SQL. */
function sqlPassword(text: string, at: number, wordEnd: number, spans: Span[]): number {
  const quote = skip(text, wordEnd, SPACE);
  if (has(WORD, text.charCodeAt(at - 1)) || quote === wordEnd || text[quote] !== "'") return wordEnd;
  const end = closingQuote(text, quote);
  add(spans, text, quote + 1, end);
  return end;
}

/** `user:password` before the `@` of an address. */
function urlCredentials(text: string, _at: number, start: number, spans: Span[]): number {
  let colon = 0;
  // The password can contain `@`: the last one before the path separates it from the host.
  let end = 0;
  let at = start;
  for (; at < text.length && has(AUTHORITY, text.charCodeAt(at)); at += 1) {
    if (text.charCodeAt(at) === COLON && colon === 0) colon = at;
    if (text.charCodeAt(at) === AT_SIGN) end = at;
  }
  const isRedacted = end - colon - 1 === REDACTED.length && text.startsWith(REDACTED, colon + 1);
  if (colon > 0 && end > colon && !isRedacted) add(spans, text, start, end);
  return at;
}

/** `name=value`, `name: value` and `"name": "value"` with a name that suggests a secret. */
function namedValue(text: string, _at: number, wordEnd: number, spans: Span[]): number {
  const nameEnd = skip(text, wordEnd, TOKEN_PART);
  const quote = skip(text, nameEnd, BACKSLASHES);
  const hasQuote = has(QUOTE, text.charCodeAt(quote));
  const sign = skip(text, hasQuote ? quote + 1 : nameEnd, SPACE);
  if (text[sign] !== ':' && text[sign] !== '=') return nameEnd;
  return value(text, skip(text, sign + 1, SPACE), spans);
}

/** The quotes of JSON within a JSON text are escaped: by one backslash, or by three, seven … in deeper levels. */
function value(text: string, start: number, spans: Span[]): number {
  const quote = skip(text, start, BACKSLASHES);
  const isQuoted = has(QUOTE, text.charCodeAt(quote));
  const end = isQuoted ? closingEscaped(text, quote, quote - start + 1) : skip(text, start, BARE);
  add(spans, text, isQuoted ? quote + 1 : start, end);
  return end;
}

/** The offset of the quote that closes the literal, or of its first backslash. `unit` is how many characters a quote takes. */
function closingEscaped(text: string, open: number, unit: number): number {
  const quote = text.charCodeAt(open);
  let backslashes = 0;
  for (let at = open + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote && Math.floor(backslashes / unit) % 2 === 0) return at - Math.min(backslashes, unit - 1);
    backslashes = code === BACKSLASH ? backslashes + 1 : 0;
  }
  return text.length;
}

/** The offset of the quote that closes the SQL literal. A doubled quote is part of the literal. */
function closingQuote(text: string, open: number): number {
  for (let at = text.indexOf("'", open + 1); at >= 0; at = text.indexOf("'", at + 2)) {
    if (text[at + 1] !== "'") return at;
  }
  return text.length;
}

function skip(text: string, from: number, members: CharacterSet): number {
  let at = from;
  while (at < text.length && has(members, text.charCodeAt(at))) at += 1;
  return at;
}

/** A flag for each ASCII character, and the last one for all others. */
type CharacterSet = Uint8Array;
const characters = (pattern: RegExp): CharacterSet =>
  Uint8Array.from([...Array(128).keys(), 'ü'.charCodeAt(0)], (code) => Number(pattern.test(String.fromCharCode(code))));
const has = (members: CharacterSet, code: number) => members[code < 128 ? code : 128] === 1;

const SPACE = characters(/\s/);
const WORD = characters(/\w/);
const TOKEN_PART = characters(/[\w-]/);
const CREDENTIAL = characters(/[\w.~+/=-]/);
const AUTHORITY = characters(/[^/\s?#"'<>]/);
const BARE = characters(/[^\s&,;}"']/);
const QUOTE = characters(/["']/);
const BACKSLASHES = characters(/\\/);
const [COLON, AT_SIGN, BACKSLASH] = [':', '@', '\\'].map((one) => one.charCodeAt(0));

const FINDERS: readonly Finder[] = [
  { words: ['bearer', 'basic'], find: authorization },
  { words: ['dpm_'], find: apiKey },
  { words: ['eyj'], find: jsonWebToken },
  { words: ['begin '], find: privateKey },
  { words: ['password'], find: sqlPassword },
  { words: ['://'], find: urlCredentials },
  {
    words: 'token secret passwd password pwd apikey api_key api-key signature credential'.split(' '),
    find: namedValue,
  },
];

const MARKS: Mark[] = FINDERS.flatMap(({ words, find }, finder) => words.map((word) => ({ word, finder, find })));
const keyOf = ({ word }: Mark) => [0, 1, 2].reduce((key, at) => nextKey(key, word.charCodeAt(at)), 0);
const BY_KEY = [...Map.groupBy(MARKS, keyOf)];
/** The first is that of keys without marks. */
const GROUPS: readonly Mark[][] = [[], ...BY_KEY.map(([, marks]) => marks)];
const GROUP_OF_KEY = new Uint8Array(KEYS);
for (const [at, [key]] of BY_KEY.entries()) GROUP_OF_KEY[key] = at + 1;
