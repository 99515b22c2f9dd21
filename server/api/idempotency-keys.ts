import { and, eq, isNull, sql } from 'drizzle-orm';
import { idempotencyKeys } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Secrets } from '../platform/secrets.ts';

const RETENTION_HOURS = 24;
/** A request that takes longer than this has lost its process. */
const LEASE_SECONDS = 60;

export interface KeyedRequest {
  user_id: string;
  key: string;
  request_hash: string;
}

/** State of a key: claimed for the caller, used by a different request, in progress, or answered. */
export type KeyState =
  | { kind: 'claimed' }
  | { kind: 'other_request' }
  | { kind: 'in_progress' }
  | { kind: 'answered'; status: number; body: unknown };

const placeOf = (request: KeyedRequest) => `idempotency:${request.user_id}:${request.key}`;
const rowOf = ({ user_id, key }: KeyedRequest) =>
  and(eq(idempotencyKeys.user_id, user_id), eq(idempotencyKeys.key, key));

/** Claims the key for this request, or returns the state of the request that holds it. */
export async function claimKey(db: Db, secrets: Secrets, request: KeyedRequest): Promise<KeyState> {
  const [claimed] = await db
    .insert(idempotencyKeys)
    .values({ ...request, status: null, created_at: sql`clock_timestamp()` })
    .onConflictDoUpdate({
      target: [idempotencyKeys.user_id, idempotencyKeys.key],
      set: {
        request_hash: request.request_hash,
        status: null,
        sealed_body: null,
        created_at: sql`clock_timestamp()`,
      },
      setWhere: sql`${idempotencyKeys.created_at} < clock_timestamp() - make_interval(hours => ${RETENTION_HOURS}) or
        (${idempotencyKeys.status} is null and ${idempotencyKeys.request_hash} = ${request.request_hash}
          and ${idempotencyKeys.created_at} < clock_timestamp() - make_interval(secs => ${LEASE_SECONDS}))`,
    })
    .returning({ key: idempotencyKeys.key });
  if (claimed) return { kind: 'claimed' };
  const [row] = await db.select().from(idempotencyKeys).where(rowOf(request));
  if (!row) return { kind: 'in_progress' };
  if (row.request_hash !== request.request_hash) return { kind: 'other_request' };
  if (row.status === null) return { kind: 'in_progress' };
  const body = row.sealed_body === null ? null : JSON.parse(secrets.open(row.sealed_body, placeOf(request)));
  return { kind: 'answered', status: row.status, body };
}

/**
 * Stores the response to a claimed request, in the transaction of the change if there is one. False: the claim expired
 * and another request with the key was answered first, so this change must be rolled back.
 */
export async function keepAnswer(
  db: Db,
  secrets: Secrets,
  answered: { request: KeyedRequest; status: number; body: unknown },
): Promise<boolean> {
  const { request, status, body } = answered;
  const sealed_body = secrets.seal(JSON.stringify(body ?? null), placeOf(request));
  const kept = await db
    .update(idempotencyKeys)
    .set({ status, sealed_body })
    .where(and(rowOf(request), isNull(idempotencyKeys.status)))
    .returning({ key: idempotencyKeys.key });
  return kept.length > 0;
}

/** Releases a claimed key whose request had no effect. */
export async function releaseKey(db: Db, request: KeyedRequest): Promise<void> {
  await db.delete(idempotencyKeys).where(and(rowOf(request), isNull(idempotencyKeys.status)));
}

/** Deletes expired keys. */
export async function deleteOldIdempotencyKeys({ db }: { db: Db }): Promise<void> {
  await db
    .delete(idempotencyKeys)
    .where(sql`${idempotencyKeys.created_at} < clock_timestamp() - make_interval(hours => ${RETENTION_HOURS})`);
}
