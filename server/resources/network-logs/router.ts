import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { read, router } from '../../api/procedure.ts';
import { ConnectorType } from '../../api/wire-types.ts';
import { runLogs, streamRunLogs } from './service.ts';

const cross_account = z.boolean().default(false).meta({
  description: 'Include other accounts. Requires cross_account.read.',
});
const RunLogsQuery = z.object({ connector_type: ConnectorType.optional(), cross_account });
const produces = {
  'application/x-ndjson': 'JSON Lines, gzipped: each line is one network log entry',
};

export const networkLogsRouter = router({
  ofConnectionRun: read
    .concat(
      rest('GET', '/connections/{connection_id}/runs/{connection_run_id}/network_logs', {
        operation_id: 'download_connection_run_network_logs',
        summary: 'Download the network logs of a run as gzipped JSON Lines',
        description: 'One JSON document per line, in the order of the requests. Kept for the days of the plan.',
        query: RunLogsQuery,
        errors: [403],
        produces,
      }),
    )
    .query(({ ctx, input }) => runLogs(ctx, input)),
  ofRun: read
    .concat(
      rest('GET', '/connection_runs/{connection_run_id}/network_logs', {
        operation_id: 'download_run_network_logs',
        summary: 'Download the network logs of a run as gzipped JSON Lines',
        description: 'One JSON document per line, in the order of the requests. Kept for the days of the plan.',
        query: RunLogsQuery,
        errors: [403],
        produces,
      }),
    )
    .query(({ ctx, input }) => runLogs(ctx, input)),
  ofStreamRun: read
    .concat(
      rest('GET', '/connections/{connection_id}/runs/{connection_run_id}/stream_runs/{stream_run_id}/network_logs', {
        operation_id: 'download_stream_run_network_logs',
        summary: 'Get the network logs of one side of a stream run, with Content-Encoding: gzip',
        description: 'One JSON document per line, in the order of the requests. Kept for the days of the plan.',
        path: { stream_run_id: z.guid() },
        query: z.object({ connector_type: ConnectorType, cross_account }),
        errors: [403],
        produces,
      }),
    )
    .query(({ ctx, input }) => streamRunLogs(ctx, input)),
});
