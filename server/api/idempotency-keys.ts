import { and, eq, isNull, sql } from 'drizzle-orm';
import { idempotencyKeys } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Secrets } from '../platform/secrets.ts';

const HOURS_KEPT = 24;
/** A request that is worked on for longer has died with its process. */
const LEASE_SECONDS = 60;

export interface KeyedRequest {
  user_id: string;
  key: string;
  request_hash: string;
}

/** What is known of a key: nothing (now it is the caller's to work on), or another request that has or has not ended. */
export type KeyState =
  | { kind: 'claimed' }
  | { kind: 'other_request' }
  | { kind: 'in_progress' }
  | { kind: 'answered'; status: number; body: unknown };

const placeOf = (request: KeyedRequest) => `idempotency:${request.user_id}:${request.key}`;
const rowOf = ({ user_id, key }: KeyedRequest) =>
  and(eq(idempotencyKeys.user_id, user_id), eq(idempotencyKeys.key, key));

/** Takes the key for this request, unless it is taken: then says how that one stands. */
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
      setWhere: sql`${idempotencyKeys.created_at} < clock_timestamp() - make_interval(hours => ${HOURS_KEPT}) or
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
 * Keeps the answer to a claimed request; in the transaction of the change, where there is one. False: the claim had run
 * out and another request with the key was quicker, so this change must not be.
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

/** Gives a claimed key back: the request had no effect worth keeping. */
export async function releaseKey(db: Db, request: KeyedRequest): Promise<void> {
  await db.delete(idempotencyKeys).where(and(rowOf(request), isNull(idempotencyKeys.status)));
}

/** Deletes keys that are older than they count. To be called now and then by any process. */
export async function sweepIdempotencyKeys({ db }: { db: Db }): Promise<void> {
  await db
    .delete(idempotencyKeys)
    .where(sql`${idempotencyKeys.created_at} < clock_timestamp() - make_interval(hours => ${HOURS_KEPT})`);
}
