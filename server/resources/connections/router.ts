import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { trustedOutput } from '../../api/trusted-output.ts';
import { act, read, router, write } from '../../api/procedure.ts';
import { rpcInput } from '../../api/rpc-input.ts';
import { UsageRange } from '../../api/usage-range.ts';
import { checkConnection, CheckConnectionRequest, ConnectionFinding } from './check.ts';
import { createConnection } from './create.ts';
import { ConnectionQuery, listConnections } from './list.ts';
import { FieldMappingSourceConnectionSchema, listFieldMappingSources } from './field-mapping-sources.ts';
import { ConnectionSchema, CreateConnectionRequest, UpdateConnectionRequest } from './schema.ts';
import { reviewSchemaChanges } from './review-schema-changes.ts';
import { previewSchedule, SchedulePreview, SchedulePreviewRequest } from './schedule-preview.ts';
import {
  ConnectionSchemaChange,
  listSchemaChanges,
  ReviewSchemaChanges,
  SchemaChangesQuery,
} from './schema-changes.ts';
import { deleteConnection, getConnection } from './service.ts';
import { ConnectionSummary, listSummaries } from './summaries.ts';
import { updateConnection } from './update.ts';
import { updateCatalog } from './update-catalog.ts';

export const connectionsRouter = router({
  list: read
    .concat(
      rest('GET', '/connections', {
        operation_id: 'list_connections',
        summary: 'List connections, newest first',
        query: ConnectionQuery,
      }),
    )
    .output(trustedOutput(z.array(ConnectionSchema)))
    .query(({ ctx, input }) => listConnections(ctx, input)),
  summaries: read
    .input(rpcInput(z.strictObject({})))
    .output(trustedOutput(z.array(ConnectionSummary)))
    .query(({ ctx }) => listSummaries(ctx)),
  create: act('connections.create')
    .concat(
      rest('POST', '/connections', {
        operation_id: 'create_connection',
        summary: 'Create a connection; without streams it selects all streams of the source',
        status: 201,
        query: UsageRange,
        query_key: 'usage',
        body: CreateConnectionRequest,
        errors: [400, 402],
      }),
    )
    .output(ConnectionSchema)
    .mutation(({ ctx, input }) => createConnection(ctx, input)),
  check: act('connections.create')
    .input(rpcInput(CheckConnectionRequest))
    .output(z.array(ConnectionFinding))
    .mutation(({ ctx, input }) => checkConnection(ctx, input)),
  get: read
    .concat(
      rest('GET', '/connections/{connection_id}', { operation_id: 'get_connection', summary: 'Get a connection' }),
    )
    .output(trustedOutput(ConnectionSchema))
    .query(({ ctx, input }) => getConnection(ctx, input)),
  update: write('connections.update')
    .concat(
      rest('POST', '/connections/{connection_id}', {
        operation_id: 'update_connection',
        summary: 'Edit, pause or resume a connection',
        body: UpdateConnectionRequest,
        errors: [400, 402],
      }),
    )
    .output(ConnectionSchema)
    .mutation(({ ctx, input }) => updateConnection(ctx, input)),
  delete: write('connections.delete')
    .concat(
      rest('DELETE', '/connections/{connection_id}', {
        operation_id: 'delete_connection',
        summary: 'Delete a connection and stop its active run; loaded data stays',
        status: 204,
      }),
    )
    .output(z.void())
    .mutation(({ ctx, input }) => deleteConnection(ctx, input)),
  updateCatalog: write('connections.update')
    .concat(
      rest('POST', '/connections/{connection_id}/update_catalog', {
        operation_id: 'update_connection_catalog',
        summary: "Refresh the source's catalog in the background; returns the id of the task",
        errors: [400],
      }),
    )
    .output(z.string())
    .mutation(({ ctx, input }) => updateCatalog(ctx, input)),
  previewSchedule: read
    .input(rpcInput(SchedulePreviewRequest))
    .output(SchedulePreview)
    .query(({ ctx, input }) => previewSchedule(ctx, input)),
  schemaChanges: read
    .input(rpcInput(SchemaChangesQuery))
    .output(z.array(ConnectionSchemaChange))
    .query(({ ctx, input }) => listSchemaChanges(ctx, input)),
  reviewSchemaChanges: write('connections.update')
    .input(rpcInput(ReviewSchemaChanges))
    .output(ConnectionSchema)
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
