import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { act, read, router, write } from '../../api/procedure.ts';
import { rpc } from '../../api/rpc.ts';
import { PageQuery } from '../../api/wire-types.ts';
import { listRejectedRows, RejectedRowSchema } from './rejected-rows.ts';
import { RerunQuery, rerunRun } from './rerun.ts';
import {
  CustomRunParameters,
  CustomRunPlanLaunchRequest,
  CustomRunPlanLaunchResponse,
  CustomRunPlannerDecision,
  CustomRunSplitOptions,
} from './custom-schema.ts';
import { launchPlan } from './launch.ts';
import { PlanProgress, readPlan } from './plan-progress.ts';
import { previewCustomRun } from './preview.ts';
import { previewTable, PreviewTableRequest, TablePreview } from './preview-table.ts';
import { FollowedRun, followRun, readRun, RunById, RunProgress } from './progress.ts';
import { listRunLog, RunLogQuery } from './run-log.ts';
import { ConnectionRunSchema, StreamRunSchema } from './schema.ts';
import { listRuns, listStreamRuns, RunQuery, StreamRunQuery } from './list.ts';
import { runConnection, stopRun } from './service.ts';
import { readSplitOptions } from './split-options.ts';
import { listTrends, StreamTrend } from './trends.ts';
import { RunLogLine } from './log-line.ts';

const CrossAccount = z.object({
  cross_account: z.boolean().default(false).meta({ description: 'Include other accounts; needs cross_account.read.' }),
});

export const runsRouter = router({
  list: read
    .concat(
      rest('GET', '/connections/{connection_id}/runs', {
        operation_id: 'list_connection_runs',
        summary: 'List the runs of a connection, newest first',
        description: 'Totals are those of the streams. Without `limit`, all of them.',
        query: RunQuery,
      }),
    )
    .output(z.array(ConnectionRunSchema))
    .query(({ ctx, input }) => listRuns(ctx, input)),
  streamRuns: read
    .concat(
      rest('GET', '/connections/{connection_id}/runs/{connection_run_id}/stream_runs', {
        operation_id: 'list_stream_runs',
        summary: 'List the stream runs of a run, by namespace and name',
        description: 'Of a run in progress, numbers are those of the last heartbeat.',
        query: CrossAccount.extend(StreamRunQuery.shape),
        errors: [403],
      }),
    )
    .output(z.array(StreamRunSchema))
    .query(({ ctx, input }) => listStreamRuns(ctx, input)),
  log: read
    .concat(
      rest('GET', '/connections/{connection_id}/runs/{connection_run_id}/log', {
        operation_id: 'list_run_log',
        summary: 'List the log of a run, oldest line first',
        description:
          'What the service did, in words: claims, reads, commits, waits, retries and the end. Kept with the run. ' +
          'The network log has the requests of the connectors.',
        query: CrossAccount.extend(RunLogQuery.shape),
        errors: [403],
        addition: true,
      }),
    )
    .output(z.array(RunLogLine))
    .query(({ ctx, input }) => listRunLog(ctx, input)),
  trends: read
    .concat(
      rest('GET', '/connections/{connection_id}/runs/{connection_run_id}/trends', {
        operation_id: 'list_run_trends',
        summary: 'Compare the streams of a run with their last ten successful runs',
        description: 'Rows and duration of each earlier run of the same kind, oldest first, and their medians.',
        addition: true,
      }),
    )
    .output(z.array(StreamTrend))
    .query(({ ctx, input }) => listTrends(ctx, input)),
  rejectedRows: read
    .concat(
      rest('GET', '/connections/{connection_id}/runs/{connection_run_id}/stream_runs/{stream_run_id}/rejected_rows', {
        operation_id: 'list_rejected_rows',
        summary: 'List the rows of a stream run that the application rejected, with its responses',
        description: 'For streams that send only differences. The next run sends these rows again.',
        path: { stream_run_id: z.guid() },
        addition: true,
        query: PageQuery,
      }),
    )
    .output(z.array(RejectedRowSchema))
    .query(({ ctx, input }) => listRejectedRows(ctx, input)),
  get: read
    .concat(
      rpc(RunById, {
        summary: 'Get a run and its stream runs',
        description: 'Needs no `connection_id`. Over REST, the run and its stream runs are two operations.',
      }),
    )
    .output(RunProgress)
    .query(({ ctx, input }) => readRun(ctx, input)),
  ofPlan: read
    .concat(
      rest('GET', '/custom_run_plans/{plan_id}', {
        operation_id: 'get_custom_run_plan',
        summary: 'Get a custom-run plan and its runs',
        description: 'The plan as it was previewed, and the runs of all its chunks, with reruns, newest first.',
        addition: true,
      }),
    )
    .output(PlanProgress)
    .query(({ ctx, input }) => readPlan(ctx, input)),
  progress: read
    .concat(
      rpc(FollowedRun, {
        summary: 'Follow a run until it ends',
        description:
          'A subscription over server-sent events: the run and its stream runs at once, then within a second of each ' +
          'change. Ends after the final state. A user may follow 20 runs at a time, else 400 `too_many_followers`.',
        yields: RunProgress,
      }),
    )
    .subscription(({ ctx, input, signal }) => followRun(ctx, input, signal!)),
  run: write('connections.run')
    .concat(
      rest('POST', '/connections/{connection_id}/run', {
        operation_id: 'run_connection',
        summary: 'Start a plain or custom run; returns the id of the first run',
        description:
          'Without a body, or with `null` or `{}`, starts a plain run. Returns null if every chunk of the custom run is skipped.',
        body: CustomRunParameters.nullable(),
        body_key: 'parameters',
        errors: [400, 402],
      }),
    )
    .output(z.string().nullable())
    .mutation(({ ctx, input }) => runConnection(ctx, input)),
  splitOptions: read
    .concat(
      rest('GET', '/connections/custom-run/split-options', {
        operation_id: 'get_custom_run_split_options',
        summary: 'Get the split options of custom runs',
        description: 'Constants for a form: units, limits and recommendations by the length of the range.',
      }),
    )
    .output(CustomRunSplitOptions)
    .query(({ ctx }) => readSplitOptions(ctx)),
  preview: write('connections.run')
    .concat(
      rest('POST', '/connections/{connection_id}/run/preview', {
        operation_id: 'preview_custom_run',
        summary: 'Preview a custom run; the plan can be launched for an hour',
        description:
          'Returns the chunks with estimates, warnings and blockers. Nothing starts before the plan is launched.',
        body: CustomRunParameters,
        body_key: 'parameters',
        errors: [400, 402],
      }),
    )
    .output(CustomRunPlannerDecision)
    .mutation(({ ctx, input }) => previewCustomRun(ctx, input)),
  launchPlan: write('connections.run')
    .concat(
      rest('POST', '/connections/{connection_id}/run/launch-plan', {
        operation_id: 'launch_custom_run_plan',
        summary: 'Launch a plan or some of its chunks',
        description:
          'Each chunk is launched once. A further launch starts the chunks that were not launched; if there are none, it ' +
          'returns the response of the earlier launch and starts nothing.',
        body: CustomRunPlanLaunchRequest,
        errors: [400, 402],
      }),
    )
    .output(CustomRunPlanLaunchResponse)
    .mutation(({ ctx, input }) => launchPlan(ctx, input)),
  previewTable: act('data.preview_destination')
    .concat(
      rest('POST', '/connections/{connection_id}/runs/{connection_run_id}/stream_runs/{stream_run_id}/table_previews', {
        operation_id: 'preview_table',
        summary: 'Read the first rows of the table that a stream was loaded into',
        description:
          'Or the rows that the stream run kept beside it as rejected. Values are as stored: masked where the stream masks them. Rows that others wrote to the table are shown, too. Nothing is stored.',
        addition: true,
        path: { stream_run_id: z.guid().toLowerCase() },
        body: PreviewTableRequest,
        errors: [400],
      }),
    )
    .output(TablePreview)
    .mutation(({ ctx, input }) => previewTable(ctx, input)),
  stop: write('connections.run')
    .concat(
      rest('POST', '/connections/{connection_run_id}/stop', {
        operation_id: 'stop_connection_run',
        summary: 'Stop a run; returns null if it has already ended',
        description: 'Streams that no worker holds stop at once, the others at their next heartbeat. Loaded rows stay.',
      }),
    )
    .output(z.string().nullable())
    .mutation(({ ctx, input }) => stopRun(ctx, input)),
  rerun: write('connections.run')
    .concat(
      rest('POST', '/connections/{connection_run_id}/rerun', {
        operation_id: 'rerun_connection_run',
        summary: 'Rerun the streams of a finished run that did not succeed; returns the id of the new run',
        description: 'Only runs that have ended can be repeated.',
        query: RerunQuery,
        errors: [400, 402],
      }),
    )
    .output(z.string())
    .mutation(({ ctx, input }) => rerunRun(ctx, input)),
});

/** REST only: over tRPC, `runs.get` also returns the stream runs. */
export const runRouter = router({
  get: read
    .concat(
      rest('GET', '/connections/{connection_id}/runs/{connection_run_id}', {
        operation_id: 'get_connection_run',
        summary: 'Get a run',
        description: 'One run of a connection, as in the list of its runs.',
        addition: true,
      }),
    )
    .output(ConnectionRunSchema)
    .query(async ({ ctx, input }) => (await readRun(ctx, input)).run),
});
