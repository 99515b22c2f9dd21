/** Of one JSON text, or of the records of one response. */
export const MAX_VALUES = 8_000_000;
const MAX_DEPTH = 1_000;
/** Shorter texts cannot contain so much that parsing them, or writing them again, takes long. */
const MIN_LENGTH = 64 * 1024;
const [QUOTE, COMMA, OPEN, CLOSE] = [0x22, 0x2c, 0x5b, 0x5d];
/** Turns a brace into a bracket. */
const TO_BRACKET = ~0x20;

export const JSON_LIMITS = `${MAX_VALUES} values or ${MAX_DEPTH} levels`;

/**
 * Where a JSON text passes the limits of values and depth; null if it does not. Parsing such a text would take seconds, and
 * memory out of proportion. A text may have several values, one after the other.
 */
export function tooComplexAt(text: string): number | null {
  if (text.length < MIN_LENGTH) return null;
  let values = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === COMMA) values += 1;
    else if ((code & TO_BRACKET) === OPEN) {
      values += 1;
      depth += 1;
    } else if ((code & TO_BRACKET) === CLOSE) depth -= 1;
    if (values > MAX_VALUES || depth > MAX_DEPTH) return at;
  }
  return null;
}

/** Index of the quote that ends the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === '\\') slashes += 1;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}
