import { and, asc, desc, eq, gte, isNull, lt, or, type SQL, sql } from 'drizzle-orm';
import { type AuditEventRow, auditEvents } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { type AuditEntry, presentEntry } from '../../api/audit/entry.ts';
import { completeUntil } from '../../../db/horizon.ts';
import type { Ctx } from '../../api/procedure.ts';
import { countRows } from '../../api/total-count.ts';
import { badRequest } from '../../platform/errors.ts';
import type { AuditFilter, AuditQuery } from './schema.ts';

/** Which entries a request means. */
interface Scope {
  /** Each matches entries of another owner. */
  owners: SQL[];
  filter: SQL | undefined;
}

/**
 * Entries of the account, newest first, or from the entry `after` on, oldest first.
 * @throws ApiError 400 `unknown_entry` for `after`.
 */
export async function listAudit(ctx: Ctx, query: AuditQuery): Promise<AuditEntry[]> {
  const { after, limit, offset } = query;
  const { owners, filter } = await scopeOf(ctx, query);
  const following = after === undefined ? undefined : await followingOf(ctx, { owners, after });
  const scope = { owners, filter: and(filter, following) };
  const [rows, total] = await Promise.all([
    selectEntries(ctx.db, scope, { order: after === undefined ? desc : asc, limit, offset }),
    countRows(ctx.db, auditEvents, and(or(...owners), scope.filter)),
  ]);
  ctx.setHeader('X-Total-Count', String(total));
  return rows.map(presentEntry);
}

/** By time. The index has the order for one owner only, so each is read by itself up to the end of the page. */
export function selectEntries(
  db: Db,
  { owners, filter }: Scope,
  { order, limit, offset }: { order: typeof asc; limit: number; offset: number },
): Promise<AuditEventRow[]> {
  const byTime = [order(auditEvents.occurred_at), order(auditEvents.seq)];
  const firstOf = (owner: SQL) =>
    sql`(${db
      .select({ seq: auditEvents.seq, occurred_at: auditEvents.occurred_at })
      .from(auditEvents)
      .where(and(owner, filter))
      .orderBy(order(auditEvents.account_id), ...byTime)
      .limit(offset + limit)})`;
  const page = sql`(
    select seq from (${sql.join(owners.map(firstOf), sql` union all `)}) as first
    order by ${order(sql`occurred_at`)}, ${order(sql`seq`)} limit ${limit} offset ${offset})`;
  return db
    .select()
    .from(auditEvents)
    .where(sql`${auditEvents.seq} in ${page}`)
    .orderBy(...byTime);
}

async function followingOf(ctx: Ctx, { owners, after }: { owners: SQL[]; after: string }): Promise<SQL> {
  const [last] = await ctx.db
    .select({ seq: auditEvents.seq, occurred_at: auditEvents.occurred_at })
    .from(auditEvents)
    .where(and(or(...owners), eq(auditEvents.seq, Number(after))));
  if (!last) throw badRequest('unknown_entry', 'after is not the id of an entry', { field: 'after' });
  const until = await completeUntil(ctx.db);
  return sql`(${auditEvents.occurred_at}, ${auditEvents.seq}) > (${last.occurred_at}::timestamptz, ${last.seq}::bigint)
    and ${auditEvents.occurred_at} < ${until}::timestamptz`;
}

/**
 * Entries without an account, such as requests with an unknown key, belong to the operator: the only account, or users
 * with `cross_account.read`.
 */
async function ownersOf({ db, principal }: Ctx): Promise<SQL[]> {
  const own = eq(auditEvents.account_id, principal.account_id);
  const [single] = await db.execute<{ single: boolean }>(
    sql`select count(*) = 1 as single from (select from accounts limit 2) as counted`,
  );
  const isOperator = single?.single === true || principal.permissions.has('cross_account.read');
  return isOperator ? [own, isNull(auditEvents.account_id)] : [own];
}

export async function scopeOf(ctx: Ctx, filter: AuditFilter): Promise<Scope> {
  const { kind, action, outcome, actor, resource_id, address, request_id, from, to } = filter;
  return {
    owners: await ownersOf(ctx),
    filter: and(
      kind && eq(auditEvents.kind, kind),
      action === undefined ? undefined : matchesAction(action),
      outcome && eq(auditEvents.outcome, outcome),
      actor === undefined ? undefined : eq(auditEvents.actor_id, actor),
      resource_id === undefined ? undefined : eq(auditEvents.resource_id, resource_id.toLowerCase()),
      address === undefined ? undefined : eq(auditEvents.address, address),
      request_id === undefined ? undefined : eq(auditEvents.request_id, request_id),
      from === undefined ? undefined : gte(auditEvents.occurred_at, from),
      to === undefined ? undefined : lt(auditEvents.occurred_at, to),
    ),
  };
}

const matchesAction = (action: string): SQL =>
  action.endsWith('.*')
    ? sql`starts_with(${auditEvents.action}, ${action.slice(0, -1)})`
    : eq(auditEvents.action, action);
