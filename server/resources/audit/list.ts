import { and, asc, desc, eq, gte, isNull, lt, or, type SQL, sql } from 'drizzle-orm';
import { auditEvents } from '../../../db/schema/index.ts';
import { type AuditEntry, presentEntry } from '../../api/audit/entry.ts';
import { completeUntil } from '../../../db/horizon.ts';
import type { Ctx } from '../../api/procedure.ts';
import { countRows } from '../../api/total-count.ts';
import { badRequest } from '../../platform/errors.ts';
import type { AuditFilter, AuditQuery } from './schema.ts';

/**
 * Entries of the account, newest first, or from the entry `after` on, oldest first.
 * @throws ApiError 400 `unknown_entry` for `after`.
 */
export async function listAudit(ctx: Ctx, query: AuditQuery): Promise<AuditEntry[]> {
  const { after } = query;
  const where = and(await filterOf(ctx, query), after === undefined ? undefined : await followingOf(ctx, after));
  const order = after === undefined ? desc : asc;
  const [rows, total] = await Promise.all([
    ctx.db
      .select()
      .from(auditEvents)
      .where(where)
      .orderBy(order(auditEvents.occurred_at), order(auditEvents.seq))
      .limit(query.limit)
      .offset(query.offset),
    countRows(ctx.db, auditEvents, where),
  ]);
  ctx.setHeader('X-Total-Count', String(total));
  return rows.map(presentEntry);
}

async function followingOf(ctx: Ctx, after: string): Promise<SQL> {
  const [last] = await ctx.db
    .select({ seq: auditEvents.seq, occurred_at: auditEvents.occurred_at })
    .from(auditEvents)
    .where(and(await visible(ctx), eq(auditEvents.seq, Number(after))));
  if (!last) throw badRequest('unknown_entry', 'after is not the id of an entry', { field: 'after' });
  const until = await completeUntil(ctx.db);
  return sql`(${auditEvents.occurred_at}, ${auditEvents.seq}) > (${last.occurred_at}::timestamptz, ${last.seq}::bigint)
    and ${auditEvents.occurred_at} < ${until}::timestamptz`;
}

/**
 * Entries without an account, such as requests with an unknown key, belong to the operator: the only account, or users
 * with `cross_account.read`.
 */
async function visible({ db, principal }: Ctx): Promise<SQL | undefined> {
  const own = eq(auditEvents.account_id, principal.account_id);
  const [single] = await db.execute<{ single: boolean }>(
    sql`select count(*) = 1 as single from (select from accounts limit 2) as counted`,
  );
  const isOperator = single?.single === true || principal.permissions.has('cross_account.read');
  return isOperator ? or(own, isNull(auditEvents.account_id)) : own;
}

export async function filterOf(ctx: Ctx, filter: AuditFilter): Promise<SQL | undefined> {
  const { kind, action, outcome, actor, resource_id, address, request_id, from, to } = filter;
  return and(
    await visible(ctx),
    kind && eq(auditEvents.kind, kind),
    action === undefined ? undefined : matchesAction(action),
    outcome && eq(auditEvents.outcome, outcome),
    actor === undefined ? undefined : eq(auditEvents.actor_id, actor),
    resource_id === undefined ? undefined : eq(auditEvents.resource_id, resource_id.toLowerCase()),
    address === undefined ? undefined : eq(auditEvents.address, address),
    request_id === undefined ? undefined : eq(auditEvents.request_id, request_id),
    from === undefined ? undefined : gte(auditEvents.occurred_at, from),
    to === undefined ? undefined : lt(auditEvents.occurred_at, to),
  );
}

const matchesAction = (action: string): SQL =>
  action.endsWith('.*')
    ? sql`starts_with(${auditEvents.action}, ${action.slice(0, -1)})`
    : eq(auditEvents.action, action);
