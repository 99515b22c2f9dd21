import { createHash } from 'node:crypto';

/** Eight characters that tell one set of parts from another, for names of temporary tables. */
export const shortHash = (...parts: (string | number)[]) =>
  createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 8);
