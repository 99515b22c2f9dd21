import { readFileSync } from 'node:fs';

/** A place that a secret is read from when it is needed: `env:NAME`, `file:/path`. Null: there is nothing. */
export function readLocalReference(reference: string, variable: (name: string) => string | undefined): string | null {
  const [kind, place] = [reference.slice(0, reference.indexOf(':')), reference.slice(reference.indexOf(':') + 1)];
  if (kind === 'env') return variable(place) || null;
  try {
    // Editors and `echo` end a file with a line break.
    return readFileSync(place, 'utf8').replace(/\r?\n$/, '') || null;
  } catch {
    return null;
  }
}
