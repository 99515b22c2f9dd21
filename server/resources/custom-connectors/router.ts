import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { act, read, router, write } from '../../api/procedure.ts';
import { createCustomConnector } from './create.ts';
import { deleteCustomConnector } from './delete.ts';
import { getOwnConnector, listOwnConnectors } from './query.ts';
import {
  CreateCustomConnectorRequest,
  CustomConnectorPreview,
  CustomConnectorSchema,
  MAX_DOCUMENTS_BODY_BYTES,
  PreviewCustomConnectorRequest,
  UpdateCustomConnectorRequest,
} from './schema.ts';
import { previewCustomConnector, updateCustomConnector } from './update.ts';

export const customConnectorsRouter = router({
  list: read
    .concat(
      rest('GET', '/custom_connectors', {
        operation_id: 'list_custom_connectors',
        summary: 'List the connectors that the account has added',
        description: 'By name. They are also among the connectors of the catalog.',
        addition: true,
      }),
    )
    .output(z.array(CustomConnectorSchema))
    .query(({ ctx }) => listOwnConnectors(ctx)),
  get: read
    .concat(
      rest('GET', '/custom_connectors/{connector_name}', {
        operation_id: 'get_custom_connector',
        summary: 'Get a connector that the account has added',
        description: 'With its address and version, and without the manifest.',
        addition: true,
      }),
    )
    .output(CustomConnectorSchema)
    .query(({ ctx, input }) => getOwnConnector(ctx, input)),
  create: act('sources.create')
    .concat(
      rest('POST', '/custom_connectors', {
        operation_id: 'create_custom_connector',
        summary: 'Add a connector from an Airbyte manifest to the catalog of the account',
        description:
          'The manifest is in the request, or the service fetches it at `manifest_url`: by https, without credentials, with at most five redirects. It is checked before it is stored.',
        status: 201,
        addition: true,
        body: CreateCustomConnectorRequest,
        max_body_bytes: MAX_DOCUMENTS_BODY_BYTES,
        errors: [400],
      }),
    )
    .output(CustomConnectorSchema)
    .mutation(({ ctx, input }) => createCustomConnector(ctx, input)),
  preview: act('sources.update')
    .concat(
      rest('POST', '/custom_connectors/{connector_name}/previews', {
        operation_id: 'preview_custom_connector',
        summary: 'Compare a newer manifest with the stored one',
        description:
          'Without a manifest, the service fetches it at the stored address. Lists the changes and the sources that would break. Nothing is stored.',
        addition: true,
        body: PreviewCustomConnectorRequest,
        max_body_bytes: MAX_DOCUMENTS_BODY_BYTES,
        errors: [400],
      }),
    )
    .output(CustomConnectorPreview)
    .mutation(({ ctx, input }) => previewCustomConnector(ctx, input)),
  update: act('sources.update')
    .concat(
      rest('POST', '/custom_connectors/{connector_name}', {
        operation_id: 'update_custom_connector',
        summary: 'Update a connector that the account has added, with its sources',
        description:
          'A new manifest needs the `digest` of its preview, and `accept_breaking` where sources would break. All sources get it at once, and their streams are discovered again.',
        addition: true,
        body: UpdateCustomConnectorRequest,
        max_body_bytes: MAX_DOCUMENTS_BODY_BYTES,
        errors: [400],
      }),
    )
    .output(CustomConnectorSchema)
    .mutation(({ ctx, input }) => updateCustomConnector(ctx, input)),
  delete: write('sources.delete')
    .concat(
      rest('DELETE', '/custom_connectors/{connector_name}', {
        operation_id: 'delete_custom_connector',
        summary: 'Remove a connector from the catalog of the account',
        description: 'Only without sources.',
        status: 204,
        addition: true,
        errors: [400],
      }),
    )
    .output(z.void())
    .mutation(({ ctx, input }) => deleteCustomConnector(ctx, input)),
});
