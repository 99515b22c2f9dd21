import { eq } from 'drizzle-orm';
import { type AccountConnectorRow, accountConnectors } from '../../db/schema/index.ts';
import type { StoredSecret } from '../connectors/contract/connector.ts';
import type { Deps } from '../deps.ts';
import { openParameters, openSecrets, secretsContext } from './connector-secrets.ts';

type Path = (string | number)[];

interface Rotating {
  /** The settings that the connector was opened with. */
  row: AccountConnectorRow;
  given: string;
  signal: AbortSignal;
}

/**
 * Gives `work` exclusive access to one secret of an account connector across all processes, so that a single-use token
 * is used only once. `work` receives the stored value, which may be newer than the one in `row`.
 */
export async function rotateSecret<Result>(
  deps: Deps,
  { row, given, signal }: Rotating,
  work: (stored: StoredSecret) => Promise<Result>,
): Promise<Result> {
  const path = given === '' ? null : pathOf(openParameters(deps, row), given);
  if (!path) return await work({ current: null, replace: async () => false });
  return await deps.database.alone({ name: `secrets of ${row.id}`, signal }, async () => {
    const [stored] = await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, row.id));
    const current = stored ? currentAt(path, openParameters(deps, row), openParameters(deps, stored)) : null;
    return await work({ current, replace: (used, replacement) => store(deps, row.id, { used, replacement }) });
  });
}

/** The path of a value in a tree, or null. */
function pathOf(value: unknown, sought: string, path: Path = []): Path | null {
  if (value === sought) return path;
  if (typeof value !== 'object' || value === null) return null;
  for (const [name, item] of Object.entries(value)) {
    const found = pathOf(item, sought, [...path, Array.isArray(value) ? Number(name) : name]);
    if (found) return found;
  }
  return null;
}

/** The value now stored at `path`. Null when other settings changed too: it may belong to a different login. */
function currentAt(path: Path, before: unknown, now: unknown): string | null {
  const read = (tree: unknown) =>
    path.reduce<unknown>((node, part) => (node as Record<string, unknown> | null | undefined)?.[part], tree);
  const [used, current] = [read(before), read(now)];
  if (typeof used !== 'string' || typeof current !== 'string') return null;
  return Bun.deepEquals(replaced(before, used, current), now) ? current : null;
}

/** Locks the row, so that concurrent changes to its other secrets are kept. */
const store = (deps: Deps, id: string, { used, replacement }: { used: string; replacement: string }) =>
  deps.db.transaction(async (tx): Promise<boolean> => {
    const [row] = await tx.select().from(accountConnectors).where(eq(accountConnectors.id, id)).for('no key update');
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
