import { eq } from 'drizzle-orm';
import { accountConnectors } from '../../db/schema/index.ts';
import type { Deps } from '../deps.ts';
import { openSecrets, secretsContext } from './connector-context.ts';

/**
 * Puts a secret in the place of another among the stored secrets of an account connector, sealed anew. The row is
 * locked meanwhile, so that of two rotations none undoes the other.
 * @returns false when no such secret is stored (any more)
 */
export const rotateSecret = (deps: Deps, id: string, { used, replacement }: { used: string; replacement: string }) =>
  deps.db.transaction(async (tx): Promise<boolean> => {
    const [row] = await tx.select().from(accountConnectors).where(eq(accountConnectors.id, id)).for('update');
    if (!row || used === '') return false;
    const before = openSecrets(deps, row);
    const after = replaced(before, used, replacement);
    if (Bun.deepEquals(before, after)) return false;
    const sealed = deps.secrets.seal(JSON.stringify(after), secretsContext(row));
    await tx.update(accountConnectors).set({ secrets: sealed }).where(eq(accountConnectors.id, id));
    return true;
  });

function replaced(value: unknown, used: string, replacement: string): unknown {
  if (value === used) return replacement;
  if (Array.isArray(value)) return value.map((item) => replaced(item, used, replacement));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, replaced(item, used, replacement)]));
}
