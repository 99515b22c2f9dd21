import { sql } from 'drizzle-orm';
import { check, index, integer, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { accountId, users } from './accounts.ts';
import { createdAt, id, instant } from './columns.ts';
import { connectionId } from './connections.ts';

/** Custom-run plans. Each chunk of a plan is launched at most once. */
export const customRunPlans = pgTable(
  'custom_run_plans',
  {
    id: id(),
    account_id: accountId(),
    connection_id: connectionId({ onDelete: 'cascade' }),
    /** The revision of the connection that was planned for. A later revision makes the plan stale. */
    connection_revision: integer('connection_revision').notNull(),
    plan_hash: text('plan_hash').notNull(),
    /** CustomRunParameters with the defaults filled in. */
    parameters: jsonb('parameters').$type<Record<string, unknown>>().notNull(),
    /** CustomRunPlannerDecision as it was returned. */
    decision: jsonb('decision').$type<Record<string, unknown>>().notNull(),
    created_by: uuid('created_by').references(() => users.id),
    created_at: createdAt(),
    expires_at: instant('expires_at').notNull(),
    launched_at: instant('launched_at'),
    /** The CustomRunPlanLaunchResponse of each launch, oldest first. Repetitions return them again. */
    launch_response: jsonb('launch_response').$type<Record<string, unknown>[]>(),
    /** When the last of its runs ended. */
    completed_at: instant('completed_at'),
  },
  (t) => [
    check('custom_run_plans_revision', sql`${t.connection_revision} >= 1`),
    check('custom_run_plans_hash', sql`${t.plan_hash} ~ '^[0-9a-f]{64}$'`),
    check('custom_run_plans_expiry', sql`${t.expires_at} > ${t.created_at}`),
    check(
      'custom_run_plans_launch',
      sql`(${t.launched_at} is null) = (${t.launch_response} is null) and jsonb_typeof(${t.launch_response}) = 'array'`,
    ),
    index('custom_run_plans_connection').on(t.connection_id, t.created_at),
  ],
);
