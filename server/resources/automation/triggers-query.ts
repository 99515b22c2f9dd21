import { and, count, desc, eq, getTableColumns, isNull, sql } from 'drizzle-orm';
import { type TriggerRow, triggers, users } from '../../../db/schema/index.ts';
import { caseSettings } from '../../automation/triggers/trigger-index.ts';
import { notFound } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { isId, type PageQuery } from '../../api/wire-types.ts';
import type { TriggerSchema } from './triggers-schema.ts';

const open_cases_count = sql<number>`(select count(*)::int from cases c
  where c.trigger_id = ${triggers.id} and c.status in ('open', 'acknowledged', 'suppressed'))`;

const {
  secrets: _secrets,
  system_key: _system_key,
  consecutive_errors: _consecutive_errors,
  deleted_at: _deleted_at,
  ...shownColumns
} = getTableColumns(triggers);
const created_by = { id: users.id, name: users.full_name, email: users.email };
const columns = { ...shownColumns, open_cases_count, created_by };

type TriggerRecord = Omit<TriggerRow, 'secrets' | 'system_key' | 'consecutive_errors' | 'deleted_at' | 'created_by'> &
  Pick<TriggerSchema, 'open_cases_count' | 'created_by'>;

const owned = (ctx: Ctx, trigger_id: string) =>
  and(eq(triggers.id, trigger_id), eq(triggers.account_id, ctx.principal.account_id), isNull(triggers.deleted_at));

/** The account's triggers, newest first; system triggers only on request. */
export async function listTriggers(ctx: Ctx, query: PageQuery & { include_system: boolean }): Promise<TriggerSchema[]> {
  const where = and(
    eq(triggers.account_id, ctx.principal.account_id),
    isNull(triggers.deleted_at),
    query.include_system ? undefined : eq(triggers.is_system, false),
  );
  const page = ctx.db
    .select(columns)
    .from(triggers)
    .leftJoin(users, eq(users.id, triggers.created_by))
    .where(where)
    .orderBy(desc(triggers.created_at), desc(triggers.id))
    .offset(query.offset)
    .$dynamic();
  const [rows, [total]] = await Promise.all([
    query.limit === undefined ? page : page.limit(query.limit),
    ctx.db.select({ count: count() }).from(triggers).where(where),
  ]);
  ctx.setHeader('X-Total-Count', String(total?.count ?? 0));
  return rows.map(present);
}

export async function getTrigger(ctx: Ctx, input: { trigger_id: string }): Promise<TriggerSchema> {
  const [row] = isId(input.trigger_id)
    ? await ctx.db
        .select(columns)
        .from(triggers)
        .leftJoin(users, eq(users.id, triggers.created_by))
        .where(owned(ctx, input.trigger_id))
    : [];
  if (!row) throw notFound('Trigger');
  return present(row);
}

/** The caller's trigger with everything that is stored. @throws ApiError 404 */
export async function findTriggerRow(ctx: Ctx, trigger_id: string): Promise<TriggerRow> {
  const [row] = await ctx.db.select().from(triggers).where(owned(ctx, trigger_id));
  if (!row) throw notFound('Trigger');
  return row;
}

/** The caller's trigger, locked until the transaction ends. @throws ApiError 404 */
export async function lockTrigger(ctx: Ctx, trigger_id: string): Promise<TriggerRow> {
  const [row] = isId(trigger_id)
    ? await ctx.db.select().from(triggers).where(owned(ctx, trigger_id)).for('no key update')
    : [];
  if (!row) throw notFound('Trigger');
  return row;
}

function present({ case_settings, ...shown }: TriggerRecord): TriggerSchema {
  return {
    ...shown,
    condition: shown.condition ?? null,
    expect: typeof shown.expect === 'string' ? shown.expect : null,
    case: caseSettings({ case_settings }),
  };
}
