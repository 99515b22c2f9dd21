import { and, asc, eq, isNull, lte, ne, sql } from 'drizzle-orm';
import {
  accountConnectors,
  type AppliedFileRow,
  appliedFiles,
  connections,
  triggers,
} from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { emitDrift } from '../../events/digest-events.ts';
import { type Actor, SYSTEM_ACTOR } from '../../events/emit.ts';
import type { Deps } from '../../deps.ts';
import { digestsOf, readItems } from './applied-settings.ts';

/** Event and row name as many differences. */
const MAX_DIFFERENCES = 1000;
const EVERY_MS = 15 * 60_000;

/**
 * Compares the account with each file that was applied to it, every 15 minutes, with any number of workers. Returns the
 * number of comparisons.
 */
export async function compareAppliedFiles({ db, now }: Pick<Deps, 'db' | 'now'>): Promise<number> {
  for (let compared = 0; ; compared++) {
    if (!(await db.transaction((tx) => compareNext(tx, now())))) return compared;
  }
}

async function compareNext(tx: Db, now: Date): Promise<boolean> {
  const [due] = await tx
    .select()
    .from(appliedFiles)
    .where(lte(appliedFiles.checked_at, new Date(now.getTime() - EVERY_MS).toISOString()))
    .orderBy(asc(appliedFiles.checked_at))
    .limit(1)
    .for('no key update', { skipLocked: true });
  if (!due) return false;
  await compareFile(tx, due, { now, actor: SYSTEM_ACTOR });
  return true;
}

/** Compares the account with a file, whose row is locked. Emits an event if the differences are others than before. */
export async function compareFile(
  tx: Db,
  file: AppliedFileRow,
  { now, actor }: { now: Date; actor: Actor },
): Promise<AppliedFileRow> {
  const found = (await differencesOf(tx, file)).slice(0, MAX_DIFFERENCES);
  const [compared] = await tx
    .update(appliedFiles)
    .set({ differences: found, checked_at: now.toISOString() })
    .where(eq(appliedFiles.id, file.id))
    .returning();
  if (!Bun.deepEquals(found, file.differences)) await report(tx, compared!, actor);
  return compared!;
}

/** Reports what the last comparison found. */
export const report = (tx: Db, { account_id, file, owner, differences }: AppliedFileRow, actor: Actor) =>
  emitDrift(tx, { account_id, actor, file, owner, items: differences });

/** What `apply` would do, such as `update connection "Shop": schedule`. */
async function differencesOf(db: Db, file: AppliedFileRow): Promise<string[]> {
  const { account_id, items } = file;
  const current = await readItems(db, { account_id, items });
  const changes = items.flatMap(({ kind, id, name, settings, digests }) => {
    const item = current.get(id);
    if (!item) return [`create ${kind} "${name}"`];
    const now = digestsOf(item, settings);
    const keys = Object.keys(now).filter((key) => now[key] !== digests[key]);
    return keys.length === 0 ? [] : [`update ${kind} "${name}": ${keys.join(', ')}`];
  });
  return file.prune ? [...changes, ...(await unnamed(db, file))] : changes;
}

/** Items of the owner that the file does not name. */
async function unnamed(db: Db, { account_id, owner, items }: AppliedFileRow): Promise<string[]> {
  const known = new Set(items.map(({ id }) => id));
  const owned = (table: typeof accountConnectors | typeof connections | typeof triggers) =>
    and(eq(table.account_id, account_id), isNull(table.deleted_at), sql`${table.owner} is not distinct from ${owner}`);
  const { id, name, connector_type } = accountConnectors;
  const connectors = await db
    .select({ id, name, kind: connector_type })
    .from(accountConnectors)
    .where(owned(accountConnectors));
  const loading = await db
    .select({ id: connections.id, name: connections.name, kind: sql<string>`'connection'` })
    .from(connections)
    .where(owned(connections));
  const own = await db
    .select({ id: triggers.id, name: triggers.name, kind: sql<string>`'trigger'` })
    .from(triggers)
    .where(and(owned(triggers), ne(triggers.is_system, true)));
  return [...connectors, ...loading, ...own]
    .filter((item) => !known.has(item.id))
    .map((item) => `delete ${item.kind} "${item.name}"`)
    .toSorted();
}
