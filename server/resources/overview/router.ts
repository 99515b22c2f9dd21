import { z } from 'zod';
import { read, router } from '../../api/procedure.ts';
import { rpcInput } from '../../api/rpc-input.ts';
import { listRecentRuns, readActivity } from './activity.ts';
import { ActivityDay, ActivityRequest, RecentRequest, RecentRun } from './schema.ts';

export const overviewRouter = router({
  activity: read
    .input(rpcInput(ActivityRequest))
    .output(z.array(ActivityDay))
    .query(({ ctx, input }) => readActivity(ctx, input)),
  recentRuns: read
    .input(rpcInput(RecentRequest))
    .output(z.array(RecentRun))
    .query(({ ctx, input }) => listRecentRuns(ctx, input)),
});
