/** Of the first byte with a second one of at least 0xa0. */
const [SURROGATE, SURROGATE_SECOND] = [0xed, 0xa0];
const SIZE = 3;
const REPLACEMENT = '\ufffd';

/**
 * Decodes UTF-8 as MySQL and MariaDB have it: halves of surrogate pairs, which utf8mb3 and utf8mb4 accept, stay what they
 * are, so that a destination that cannot store them refuses the value. Others are read as U+FFFD.
 */
export function decodeText(bytes: Buffer, from = 0, to = bytes.length): string {
  const text = bytes.toString('utf8', from, to);
  if (!text.includes(REPLACEMENT)) return text;
  let decoded = '';
  let start = from;
  for (let at = bytes.indexOf(SURROGATE, from); at >= 0 && at + SIZE <= to; at = bytes.indexOf(SURROGATE, at + 1)) {
    if (bytes[at + 1]! < SURROGATE_SECOND) continue;
    const half = ((bytes[at]! & 0x0f) << 12) | ((bytes[at + 1]! & 0x3f) << 6) | (bytes[at + 2]! & 0x3f);
    decoded += bytes.toString('utf8', start, at) + String.fromCharCode(half);
    start = at + SIZE;
  }
  return decoded + bytes.toString('utf8', start, to);
}
