import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { trustedOutput } from '../../api/trusted-output.ts';
import { act, read, router, write } from '../../api/procedure.ts';
import { UsageRange } from '../../api/usage-range.ts';
import { checkConnection, CheckConnectionRequest, ConnectionFinding } from './check.ts';
import { createConnection } from './create.ts';
import { ConnectionQuery, listConnections } from './list.ts';
import { FieldMappingSourceConnectionSchema, listFieldMappingSources } from './field-mapping-sources.ts';
import { MovedFolder, moveFolder, MoveFolderRequest } from './move-folder.ts';
import { ConnectionSchema, CreateConnectionRequest, UpdateConnectionRequest } from './schema.ts';
import { ChangesPreview, previewChanges, PreviewChangesRequest } from './preview/preview-changes.ts';
import { previewStream } from './preview/preview-stream.ts';
import { PreviewStreamRequest, StreamPreview } from './preview/schema.ts';
import { reviewSchemaChanges } from './review-schema-changes.ts';
import { previewSchedule, SchedulePreview, SchedulePreviewRequest } from './schedule-preview.ts';
import { ConnectionSchemaChange, listSchemaChanges, ReviewDecision } from './schema-changes.ts';
import { deleteConnection, getConnection } from './service.ts';
import { ConnectionSummary, listSummaries, SummaryQuery } from './summaries.ts';
import { updateConnection } from './update.ts';
import { updateCatalog } from './update-catalog.ts';

export const connectionsRouter = router({
  list: read
    .concat(
      rest('GET', '/connections', {
        operation_id: 'list_connections',
        summary: 'List connections, newest first',
        description: 'Without `limit`, all of them.',
        query: ConnectionQuery,
      }),
    )
    .output(trustedOutput(z.array(ConnectionSchema)))
    .query(({ ctx, input }) => listConnections(ctx, input)),
  summaries: read
    .concat(
      rest('GET', '/connection_summaries', {
        operation_id: 'list_connection_summaries',
        summary: 'List all connections in short',
        description: 'Names, statuses and last runs without streams and schedules.',
        addition: true,
        query: SummaryQuery,
      }),
    )
    .output(trustedOutput(z.array(ConnectionSummary)))
    .query(({ ctx, input }) => listSummaries(ctx, input)),
  create: act('connections.create')
    .concat(
      rest('POST', '/connections', {
        operation_id: 'create_connection',
        summary: 'Create a connection; without streams it selects all streams of the source',
        description:
          'Checks the plan limits over the usage range of the query. A source without a catalog is discovered first. If it does not answer within a second, a task adds the streams later. A request that names streams, copies a mapping or runs at once is checked against the catalog: after five seconds it is 400 `catalog_not_ready` with the `task_id` of the discovery; send it again once the task has succeeded.',
        status: 201,
        query: UsageRange,
        query_key: 'usage',
        body: CreateConnectionRequest,
        revisioned: true,
        errors: [400, 402],
      }),
    )
    .output(trustedOutput(ConnectionSchema))
    .mutation(({ ctx, input }) => createConnection(ctx, input)),
  check: act('connections.create')
    .concat(
      rest('POST', '/connection_checks', {
        operation_id: 'check_connection',
        summary: 'Check the settings of a connection before it is created',
        description: 'Returns what a create would refuse, each with its place. Nothing is stored.',
        addition: true,
        body: CheckConnectionRequest,
        errors: [400],
      }),
    )
    .output(z.array(ConnectionFinding))
    .mutation(({ ctx, input }) => checkConnection(ctx, input)),
  previewStream: act('data.preview')
    .concat(
      rest('POST', '/stream_previews', {
        operation_id: 'preview_stream',
        summary: 'Preview the first rows of a stream, as a run would write them',
        description:
          'Reads the first rows of the source with these settings. Masked values are returned masked only; nothing is stored.',
        addition: true,
        body: PreviewStreamRequest,
        errors: [400],
      }),
    )
    .output(StreamPreview)
    .mutation(({ ctx, input }) => previewStream(ctx, input)),
  previewChanges: act('data.preview')
    .concat(
      rest('POST', '/connections/{connection_id}/change_previews', {
        operation_id: 'preview_changes',
        summary: 'Count the rows that the next run of a stream would send',
        description:
          'For streams that send only differences. Reads all rows of the source, for at most 25 seconds, and compares them with what was sent. Nothing is sent or stored.',
        addition: true,
        body: PreviewChangesRequest,
        errors: [400],
      }),
    )
    .output(ChangesPreview)
    .mutation(({ ctx, input }) => previewChanges(ctx, input)),
  get: read
    .concat(
      rest('GET', '/connections/{connection_id}', {
        operation_id: 'get_connection',
        summary: 'Get a connection',
        description: 'With schedule and streams. The ETag is the revision.',
        revisioned: true,
      }),
    )
    .output(trustedOutput(ConnectionSchema))
    .query(({ ctx, input }) => getConnection(ctx, input)),
  update: write('connections.update')
    .concat(
      rest('POST', '/connections/{connection_id}', {
        operation_id: 'update_connection',
        summary: 'Edit, pause or resume a connection',
        description:
          'Omitted keys stay unchanged; read-only keys are ignored. With `If-Match` or `revision`, an object that has changed since is left as it is.',
        body: UpdateConnectionRequest,
        revisioned: true,
        errors: [400, 402, 412],
      }),
    )
    .output(trustedOutput(ConnectionSchema))
    .mutation(({ ctx, input }) => updateConnection(ctx, input)),
  delete: write('connections.delete')
    .concat(
      rest('DELETE', '/connections/{connection_id}', {
        operation_id: 'delete_connection',
        summary: 'Delete a connection and stop its active run; loaded data stays',
        description: 'Its runs and usage stay in the history.',
        status: 204,
      }),
    )
    .output(z.void())
    .mutation(({ ctx, input }) => deleteConnection(ctx, input)),
  moveFolder: write('connections.update')
    .concat(
      rest('POST', '/connection_folders/move', {
        operation_id: 'move_connection_folder',
        summary: 'Rename or move a folder: all of its connections at once',
        description:
          'Those below it move along. With `to: null`, the folder is removed and what is below it moves up. Each connection gets a new revision.',
        addition: true,
        body: MoveFolderRequest,
        errors: [400, 404],
      }),
    )
    .output(MovedFolder)
    .mutation(({ ctx, input }) => moveFolder(ctx, input)),
  updateCatalog: write('connections.update')
    .concat(
      rest('POST', '/connections/{connection_id}/update_catalog', {
        operation_id: 'update_connection_catalog',
        summary: "Refresh the source's catalog in the background; returns the id of the task",
        description: 'Ends with the event `catalog_refreshed`.',
        errors: [400],
      }),
    )
    .output(z.string())
    .mutation(({ ctx, input }) => updateCatalog(ctx, input)),
  previewSchedule: read
    .concat(
      rest('POST', '/schedules/preview', {
        operation_id: 'preview_schedule',
        summary: 'Describe a schedule and list its next runs',
        description: 'Checks a schedule without storing it.',
        addition: true,
        body: SchedulePreviewRequest,
        errors: [400],
      }),
    )
    .output(SchedulePreview)
    .query(({ ctx, input }) => previewSchedule(ctx, input)),
  schemaChanges: read
    .concat(
      rest('GET', '/connections/{connection_id}/schema_changes', {
        operation_id: 'list_schema_changes',
        summary: 'List schema changes that wait for a review',
        description: 'Differences between the source and the settings of the connection, grouped by stream.',
        addition: true,
      }),
    )
    .output(z.array(ConnectionSchemaChange))
    .query(({ ctx, input }) => listSchemaChanges(ctx, input)),
  reviewSchemaChanges: write('connections.update')
    .concat(
      rest('POST', '/connections/{connection_id}/schema_changes/review', {
        operation_id: 'review_schema_changes',
        summary: 'Accept or ignore the pending schema changes',
        description:
          '`accept` applies what can be applied, `ignore` continues without it. A connection that breaking changes stopped can then be resumed.',
        addition: true,
        body: ReviewDecision,
        errors: [400, 402],
      }),
    )
    .output(trustedOutput(ConnectionSchema))
    .mutation(({ ctx, input }) => reviewSchemaChanges(ctx, input)),
  fieldMappingSources: read
    .concat(
      rest('GET', '/connections/{connection_id}/field_mapping_sources', {
        operation_id: 'list_field_mapping_sources',
        summary: 'List connections whose field settings can be copied, most similar first',
        description: 'A create copies them by `copy_field_mapping_from_connection_id`.',
      }),
    )
    .output(z.array(FieldMappingSourceConnectionSchema))
    .query(({ ctx, input }) => listFieldMappingSources(ctx, input)),
});
