import { z } from 'zod';
import { rest } from '../../endpoint.ts';
import { read, router, write } from '../../procedure.ts';
import { Page } from '../wire.ts';
import { rerunRun } from './rerun.ts';
import { ConnectionRunSchema, CustomRunParameters, StreamRunSchema } from './schema.ts';
import { listRuns, listStreamRuns, runConnection, stopRun } from './service.ts';

const CrossAccount = z.object({
  cross_account: z.boolean().default(false).meta({ description: 'Beyond the own account; needs cross_account.read.' }),
});

export const runsRouter = router({
  list: read
    .concat(
      rest('GET', '/connections/{connection_id}/runs', { summary: 'Runs of a connection, newest first', query: Page }),
    )
    .output(z.array(ConnectionRunSchema))
    .query(({ ctx, input }) => listRuns(ctx, input)),
  streamRuns: read
    .concat(
      rest('GET', '/connections/{connection_id}/runs/{connection_run_id}/stream_runs', {
        summary: 'Stream runs of a run, by namespace and name',
        query: CrossAccount.extend(Page.shape),
        errors: [403],
      }),
    )
    .output(z.array(StreamRunSchema))
    .query(({ ctx, input }) => listStreamRuns(ctx, input)),
  run: write('connections.run')
    .concat(
      rest('POST', '/connections/{connection_id}/run', {
        summary: "Starts a run; answers with the run's id",
        body: CustomRunParameters.nullable(),
        body_key: 'parameters',
        errors: [400, 402],
      }),
    )
    .output(z.string().nullable())
    .mutation(({ ctx, input }) => runConnection(ctx, input)),
  stop: write('connections.run')
    .concat(
      rest('POST', '/connections/{connection_run_id}/stop', {
        summary: 'Asks a run to stop; null when it had ended already',
      }),
    )
    .output(z.string().nullable())
    .mutation(({ ctx, input }) => stopRun(ctx, input)),
  rerun: write('connections.run')
    .concat(
      rest('POST', '/connections/{connection_run_id}/rerun', {
        summary: "Starts a new run with the streams of one that has ended; answers with the new run's id",
        errors: [400, 402],
      }),
    )
    .output(z.string())
    .mutation(({ ctx, input }) => rerunRun(ctx, input)),
});
