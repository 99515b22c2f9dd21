import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { read, router } from '../../api/procedure.ts';
import { listRecentRuns, readActivity } from './activity.ts';
import { ActivityDay, ActivityRequest, RecentRequest, RecentRun } from './schema.ts';

export const overviewRouter = router({
  activity: read
    .concat(
      rest('GET', '/overview/activity', {
        operation_id: 'list_activity',
        summary: 'List rows and runs by day, oldest first',
        description: 'The last days of the account, today included.',
        addition: true,
        query: ActivityRequest,
      }),
    )
    .output(z.array(ActivityDay))
    .query(({ ctx, input }) => readActivity(ctx, input)),
  recentRuns: read
    .concat(
      rest('GET', '/overview/recent_runs', {
        operation_id: 'list_recent_runs',
        summary: 'List the newest runs of all connections',
        description: 'Runs of every connection of the account, newest first.',
        addition: true,
        query: RecentRequest,
      }),
    )
    .output(z.array(RecentRun))
    .query(({ ctx, input }) => listRecentRuns(ctx, input)),
});
