import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { act, read, router, write } from '../../api/procedure.ts';
import { rpcInput } from '../../api/rpc-input.ts';
import { UsageRange } from '../../api/usage-range.ts';
import { ConnectorType } from '../../api/wire-types.ts';
import { updateAccountConnectorCatalog } from './catalog.ts';
import { AccountConnectorCatalogItemSchema, UpdateAccountConnectorCatalogRequest } from './catalog-schema.ts';
import { ComparedParameters, differingParameters } from './compare.ts';
import { createAccountConnector } from './create.ts';
import { deleteAccountConnector } from './delete.ts';
import { Discovery, orderCatalog, readDiscovery } from './discovery.ts';
import {
  ExportLink,
  exportLink,
  ExportLinkRequest,
  ExportSourceMetadataRequest,
  orderExport,
} from './export-metadata.ts';
import { login } from './login.ts';
import { dynamicPossibleValues } from './possible-values.ts';
import { AccountConnectorQuery, getAccountConnector, listAccountConnectors } from './query.ts';
import { CatalogQuery, readCatalog } from './read-catalog.ts';
import { AccountConnectorSchema, CreateAccountConnectorRequest, UpdateAccountConnectorRequest } from './schema.ts';
import { GenerateSSHKeyResponse, generateAccountSshKey } from './ssh-key.ts';
import { updateAccountConnector } from './update.ts';
import { validateParameter } from './validate-parameter.ts';
import { ValidationRequest, ValidationResult } from './validation-schema.ts';

// The required permission depends on the row's type, so the services check it after loading the row.
const create = ['sources.create', 'destinations.create'] as const;
const update = ['sources.update', 'destinations.update'] as const;
const remove = ['sources.delete', 'destinations.delete'] as const;

export const accountConnectorsRouter = router({
  generateSshKey: act([...create, ...update])
    .concat(
      rest('POST', '/account_connectors/generate_ssh_key', {
        operation_id: 'generate_ssh_key',
        summary: 'Generate a key pair for an SSH tunnel; it is not stored',
        errors: [402],
      }),
    )
    .output(GenerateSSHKeyResponse)
    .mutation(({ ctx }) => generateAccountSshKey(ctx)),
  list: read
    .concat(
      rest('GET', '/account_connectors', {
        operation_id: 'list_account_connectors',
        summary: 'List sources and destinations, newest first',
        query: AccountConnectorQuery,
      }),
    )
    .output(z.array(AccountConnectorSchema))
    .query(({ ctx, input }) => listAccountConnectors(ctx, input)),
  create: act(create)
    .concat(
      rest('POST', '/account_connectors', {
        operation_id: 'create_account_connector',
        summary: 'Create a source or destination and test it',
        status: 201,
        query: UsageRange,
        query_key: 'usage',
        body: CreateAccountConnectorRequest,
        errors: [400, 402],
      }),
    )
    .output(AccountConnectorSchema)
    .mutation(({ ctx, input }) => createAccountConnector(ctx, input)),
  get: read
    .concat(
      rest('GET', '/account_connectors/{connector_type}/{account_connector_id}', {
        operation_id: 'get_account_connector',
        summary: 'Get a source or destination',
        path: { connector_type: ConnectorType },
      }),
    )
    .output(AccountConnectorSchema)
    .query(({ ctx, input }) => getAccountConnector(ctx, input)),
  update: act(update)
    .concat(
      rest('POST', '/account_connectors/{account_connector_id}', {
        operation_id: 'update_account_connector',
        summary: 'Edit a source or destination; changed credentials are tested',
        body: UpdateAccountConnectorRequest,
        errors: [400],
      }),
    )
    .output(AccountConnectorSchema)
    .mutation(({ ctx, input }) => updateAccountConnector(ctx, input)),
  delete: write(remove)
    .concat(
      rest('DELETE', '/account_connectors/{account_connector_id}', {
        operation_id: 'delete_account_connector',
        summary: 'Delete a source or destination that no connection uses',
        status: 204,
        errors: [400],
      }),
    )
    .output(z.void())
    .mutation(({ ctx, input }) => deleteAccountConnector(ctx, input)),
  login: act(update)
    .concat(
      rest('POST', '/account_connectors/{account_connector_id}/login', {
        operation_id: 'login_account_connector',
        summary: 'Test a source or destination with its stored credentials',
        errors: [400],
      }),
    )
    .output(z.string())
    .mutation(({ ctx, input }) => login(ctx, input)),
  catalog: read
    .input(rpcInput(CatalogQuery))
    .output(z.array(AccountConnectorCatalogItemSchema))
    .query(({ ctx, input }) => readCatalog(ctx, input)),
  discovery: read
    .input(rpcInput(CatalogQuery))
    .output(Discovery)
    .query(({ ctx, input }) => readDiscovery(ctx, input)),
  discover: write(update)
    .input(rpcInput(CatalogQuery))
    .output(z.string())
    .mutation(({ ctx, input }) => orderCatalog(ctx, input)),
  updateCatalog: write(update)
    .concat(
      rest('POST', '/account_connectors/{account_connector_id}/catalog', {
        operation_id: 'update_account_connector_catalog',
        summary: 'Set field options for every connection of a source; returns the catalog',
        body: UpdateAccountConnectorCatalogRequest,
        errors: [400],
      }),
    )
    .output(z.array(AccountConnectorCatalogItemSchema))
    .mutation(({ ctx, input }) => updateAccountConnectorCatalog(ctx, input)),
  dynamicPossibleValues: read
    .concat(
      rest('GET', '/account_connectors/{account_connector_id}/dynamic_possible_values/{parameter_name}', {
        operation_id: 'list_dynamic_possible_values',
        summary: 'List possible values of a parameter, requested from the connected system, with labels',
        description: 'At most 5,000, alphabetic by label; asked at most once a minute.',
        query: z.object({ connection_id: z.string().optional(), stream_id: z.guid().toLowerCase().optional() }),
        errors: [400],
      }),
    )
    .output(z.record(z.string(), z.string()))
    .query(({ ctx, input }) => dynamicPossibleValues(ctx, input)),
  validateParameter: act(update)
    .concat(
      rest('POST', '/account_connectors/{account_connector_id}/validate_parameter', {
        operation_id: 'validate_parameter',
        summary: 'Validate a value of a parameter; 200 with is_valid=false when invalid',
        body: ValidationRequest,
        errors: [400],
      }),
    )
    .output(ValidationResult)
    .mutation(({ ctx, input }) => validateParameter(ctx, input)),
  differingParameters: act(update)
    .input(rpcInput(ComparedParameters))
    .output(z.array(z.string()))
    .mutation(({ ctx, input }) => differingParameters(ctx, input)),
  exportMetadata: write('metadata.export')
    .concat(
      rest('POST', '/account_connectors/{account_connector_id}/source_tasks/export_metadata', {
        operation_id: 'export_source_metadata',
        summary: 'Export the metadata of a source in the background; returns the id of the task',
        description:
          'Ends with the event `metadata_export_succeeded` or `metadata_export_failed`. The event contains no link: callers with `metadata.export` request one, which works for ten minutes.',
        body: ExportSourceMetadataRequest.nullable(),
        body_key: 'request',
        errors: [400, 402],
      }),
    )
    .output(z.string())
    .mutation(({ ctx, input }) => orderExport(ctx, input)),
  exportLink: act('metadata.export')
    .input(rpcInput(ExportLinkRequest))
    .output(ExportLink)
    .mutation(({ ctx, input }) => exportLink(ctx, input)),
});
