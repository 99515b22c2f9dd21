import { and, eq, inArray, sql } from 'drizzle-orm';
import { accountConnectors, type StoredRunError } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { emitConnectorEvent } from '../events/account-connector-events.ts';
import type { EventKind } from '../events/kinds.ts';
import type { Claim } from './claim-stream.ts';

/** Consecutive configuration errors after which a source or destination is broken. */
const BROKEN_AFTER = 3;

/** After a stream succeeded: its source and destination work, whatever their status was. */
export async function recordSuccess(db: Db, claim: Pick<Claim, 'source' | 'destination'>): Promise<void> {
  for (const row of [claim.source, claim.destination]) {
    if (row.status === 'active' && row.failure_streak === 0) continue;
    const [recovered] = await db
      .update(accountConnectors)
      .set({ failure_streak: 0, status: 'active', status_reason: null, status_message: null })
      .where(
        and(
          eq(accountConnectors.id, row.id),
          inArray(accountConnectors.status, ['active', 'pending_test', 'broken', 'needs_reauth']),
        ),
      )
      .returning({ id: accountConnectors.id });
    if (recovered && row.status !== 'active')
      await report(db, { row, event: 'account_connector_authenticated', reason: null });
  }
}

/** After a stream failed: the side that the error came from is broken after three failures, or needs new credentials at once. */
export async function recordFailure(db: Db, claim: Claim, error: StoredRunError): Promise<void> {
  const row = error.origin === 'source' ? claim.source : error.origin === 'destination' ? claim.destination : null;
  if (!row || (error.type !== 'auth_error' && error.type !== 'config_error')) return;
  const [counted] = await db
    .update(accountConnectors)
    .set({ failure_streak: sql`${accountConnectors.failure_streak} + 1` })
    .where(and(eq(accountConnectors.id, row.id), eq(accountConnectors.status, 'active')))
    .returning({ streak: accountConnectors.failure_streak });
  if (!counted) return;
  const reauth = error.type === 'auth_error';
  if (!reauth && counted.streak < BROKEN_AFTER) return;
  await db
    .update(accountConnectors)
    .set({ status: reauth ? 'needs_reauth' : 'broken', status_reason: error.code, status_message: error.message })
    .where(eq(accountConnectors.id, row.id));
  const event = reauth ? 'account_connector_reauth_required' : 'account_connector_broken';
  await report(db, { row, event, reason: error.code });
}

const SENTENCES: Partial<Record<EventKind, string>> = {
  account_connector_authenticated: 'works again',
  account_connector_broken: 'is broken',
  account_connector_reauth_required: 'needs new credentials',
};

async function report(db: Db, about: { row: Claim['source']; event: EventKind; reason: string | null }): Promise<void> {
  const { row, event, reason } = about;
  const [now] = await db
    .select({ status: accountConnectors.status })
    .from(accountConnectors)
    .where(eq(accountConnectors.id, row.id));
  await emitConnectorEvent(db, {
    row: { ...row, status: now?.status ?? row.status, status_reason: reason },
    event,
    sentence: SENTENCES[event] ?? 'has changed',
  });
}
