/** Stands for a secret in answers of the service. */
export const MASK = '**********';

/** Whether a text of the service is `value` with its secrets masked: as a whole, or within a URL. */
export function isMaskOf(masked: unknown, value: unknown): boolean {
  if (masked === MASK) return true;
  if (typeof masked !== 'string' || typeof value !== 'string' || !masked.includes(MASK)) return false;
  const pieces = masked.split(MASK);
  let at = 0;
  for (const [index, piece] of pieces.entries()) {
    const found = index === pieces.length - 1 ? value.length - piece.length : value.indexOf(piece, at);
    if (found < at || (index === 0 && found !== 0) || !value.startsWith(piece, found)) return false;
    at = found + piece.length;
  }
  return true;
}

/** Whether a value of the service hides a secret. */
export const hasMask = (value: unknown): boolean => (JSON.stringify(value) ?? '').includes(MASK);
