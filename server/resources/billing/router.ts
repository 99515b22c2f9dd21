import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { act, router, write } from '../../api/procedure.ts';
import { UsageRange } from '../../api/usage-range.ts';
import { aggregatedUsage } from './aggregated.ts';
import { connectionUsage } from './connection-usage.ts';
import { changePlan, listPlans } from './plans.ts';
import { AggregatedUsageSchema, ChangePlan, ConnectionUsageSchema, PlanSchema, UsageDays } from './schema.ts';

export const billingRouter = router({
  plans: act('billing.read')
    .concat(
      rest('GET', '/billing/plans', {
        operation_id: 'list_plans',
        summary: 'List billing plans and the plan of the account',
        description: 'In the order of their size.',
      }),
    )
    .output(z.array(PlanSchema))
    .query(({ ctx }) => listPlans(ctx)),
  aggregatedUsage: act('billing.read')
    .concat(
      rest('GET', '/billing/usage/aggregated', {
        operation_id: 'get_aggregated_usage',
        summary: 'Get the usage of the account in a date range, and its limits',
        description: 'Days are UTC. `limits` compares the account with its plan.',
        query: UsageRange,
        errors: [400],
      }),
    )
    .output(AggregatedUsageSchema)
    .query(({ ctx, input }) => aggregatedUsage(ctx, input)),
  connectionUsage: act('billing.read')
    .concat(
      rest('GET', '/billing/usage/connection-usage', {
        operation_id: 'list_connection_usage',
        summary: 'List usage by connection, most rows first',
        description: 'Includes deleted connections with usage in these days.',
        query: UsageDays,
        errors: [400],
      }),
    )
    .output(z.array(ConnectionUsageSchema))
    .query(({ ctx, input }) => connectionUsage(ctx, input)),
  changePlan: write('billing.read')
    .concat(
      rest('POST', '/billing/plan', {
        operation_id: 'change_plan',
        summary: 'Change the billing plan of the account',
        description: 'Locks connections that the new plan does not allow. Also needs `users.manage`.',
        addition: true,
        body: ChangePlan,
        errors: [403],
      }),
    )
    .output(PlanSchema)
    .mutation(({ ctx, input }) => changePlan(ctx, input)),
});
