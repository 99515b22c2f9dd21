import { index, integer, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { createdAt, id, instant } from './columns.ts';
import { connections } from './connections.ts';

/** What the planner of custom runs decided; launched at most once. */
export const customRunPlans = pgTable(
  'custom_run_plans',
  {
    id: id(),
    account_id: uuid('account_id').notNull(),
    connection_id: uuid('connection_id')
      .notNull()
      .references(() => connections.id, { onDelete: 'cascade' }),
    /** The connection's revision that was planned for: a later one makes the plan stale. */
    connection_revision: integer('connection_revision').notNull(),
    plan_hash: text('plan_hash').notNull(),
    /** CustomRunParameters with the defaults filled in. */
    parameters: jsonb('parameters').$type<Record<string, unknown>>().notNull(),
    /** CustomRunPlannerDecision as it was answered. */
    decision: jsonb('decision').$type<Record<string, unknown>>().notNull(),
    created_by: uuid('created_by'),
    created_at: createdAt(),
    expires_at: instant('expires_at').notNull(),
    launched_at: instant('launched_at'),
    /** CustomRunPlanLaunchResponse: a second launch answers with it. */
    launch_response: jsonb('launch_response').$type<Record<string, unknown>>(),
    /** When the last of its runs had ended. */
    completed_at: instant('completed_at'),
  },
  (t) => [index('custom_run_plans_connection').on(t.connection_id, t.created_at)],
);
