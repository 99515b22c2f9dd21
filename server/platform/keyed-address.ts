import { MASK } from './mask.ts';

const SCHEME = '://';
/** A shorter value, such as `json` in `?format=json`, is an ordinary word in a log. */
const MIN_SECRET_LENGTH = 6;

/** A URL in parts. The secret ones are the user information, the values of the query, and keys in the path. */
interface Part {
  text: string;
  secret: boolean;
}

/**
 * The URL with its credentials masked: `https://**********@host/hook?key=**********`. A URL without credentials is
 * returned unchanged, so a masked URL differs from the original exactly when there is something to hide.
 */
export const maskAddress = (address: string): string =>
  partsOf(address)
    .map(({ text, secret }) => (secret ? MASK : text))
    .join('');

/** The credentials in a URL as written, and decoded, for the redaction of logs. */
export const addressSecrets = (address: string): string[] =>
  partsOf(address)
    .filter(({ secret }) => secret)
    .flatMap(({ text }) => text.split(':'))
    .filter((text) => text.length >= MIN_SECRET_LENGTH)
    .flatMap((text) => [...new Set([text, decoded(text)])]);

/** Splits without decoding: the parts joined give the same text again. */
function partsOf(address: string): Part[] {
  const start = address.indexOf(SCHEME) + SCHEME.length;
  if (start < SCHEME.length) return [plain(address)];
  const end = firstOf(address, '#', start);
  const query = Math.min(firstOf(address, '?', start), end);
  const path = Math.min(firstOf(address, '/', start), query);
  return [
    plain(address.slice(0, start)),
    ...authorityParts(address.slice(start, path)),
    ...joined(address.slice(path, query), '/', (segment) => [{ text: segment, secret: isKey(segment) }]),
    ...joined(address.slice(query, end), '&', queryParts),
    plain(address.slice(end)),
  ];
}

const plain = (text: string): Part => ({ text, secret: false });

function firstOf(text: string, character: string, from: number): number {
  const at = text.indexOf(character, from);
  return at < 0 ? text.length : at;
}

function authorityParts(authority: string): Part[] {
  const at = authority.lastIndexOf('@');
  return at < 1 ? [plain(authority)] : [{ text: authority.slice(0, at), secret: true }, plain(authority.slice(at))];
}

function joined(text: string, separator: string, parts: (piece: string) => Part[]): Part[] {
  return text.split(separator).flatMap((piece, index) => [...(index > 0 ? [plain(separator)] : []), ...parts(piece)]);
}

function queryParts(pair: string): Part[] {
  const value = pair.indexOf('=') + 1;
  // Without a name, as in `?sharedkey`, the text itself can be the key.
  const from = value > 0 ? value : pair.startsWith('?') ? 1 : 0;
  const text = pair.slice(from);
  const isSecret = value > 0 ? text !== '' && !isPlaceholder(text) : isKey(text);
  return [plain(pair.slice(0, from)), { text, secret: isSecret }];
}

const isPlaceholder = (text: string) => text.startsWith('{{') && text.endsWith('}}');

/** Whether a text looks like a key rather than like words: the last part of a Slack webhook, a UUID, a token. */
const isKey = (text: string): boolean =>
  text
    .split(/[-_.~ ]/)
    .some(
      (piece) =>
        (piece.length >= 12 && /\d/.test(piece) && /[A-Za-z]/.test(piece)) ||
        (piece.length >= 20 && /[A-Z]/.test(piece)),
    );

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
