import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { act, read, router, write } from '../../api/procedure.ts';
import { UsageRange } from '../../api/usage-range.ts';
import { ConnectorType } from '../../api/wire-types.ts';
import { updateAccountConnectorCatalog } from './catalog.ts';
import { beginConsent, getConsent } from './consents/begin.ts';
import { BeginConsentRequest, BegunConsent, OAuthConsent } from './consents/schema.ts';
import { AccountConnectorCatalogItemSchema, UpdateAccountConnectorCatalogRequest } from './catalog-schema.ts';
import { ComparedParameters, differingParameters } from './compare.ts';
import { checkAccountConnector, createAccountConnector } from './create.ts';
import { deleteAccountConnector } from './delete.ts';
import { Discovery, orderCatalog, readDiscovery, readTask, TaskSchema } from './discovery.ts';
import { ExportLink, exportLink, ExportSourceMetadataRequest, orderExport } from './export-metadata.ts';
import { login } from './login.ts';
import { dynamicPossibleValues } from './possible-values.ts';
import { AccountConnectorQuery, getAccountConnector, listAccountConnectors } from './query.ts';
import { readCatalog } from './read-catalog.ts';
import {
  AccountConnectorSchema,
  AccountConnectorTest,
  CheckedAccountConnector,
  CreateAccountConnectorRequest,
  UpdateAccountConnectorRequest,
} from './schema.ts';
import { GenerateSSHKeyResponse, generateAccountSshKey } from './ssh-key.ts';
import { listSecretUses, SecretUseSchema, SecretUsesQuery } from './secrets/uses.ts';
import { updateAccountConnector } from './update.ts';
import {
  DefinitionDraft,
  DefinitionDraftRequest,
  draftDefinition,
  MAX_DRAFT_BODY_BYTES,
} from './trials/draft-definition.ts';
import { SchemaTestRequest, testSchema } from './trials/test-schema.ts';
import { DatasetTrial, DatasetTrialRequest, tryDataset } from './trials/try-dataset.ts';
import { PageTrial, PageTrialRequest, tryPage } from './trials/try-page.ts';
import { validateParameter } from './validate-parameter.ts';
import { ValidationRequest, ValidationResult } from './validation-schema.ts';
import { getWebhookInbox, rotateWebhookAddress, RotateWebhookAddressRequest, WebhookInbox } from './webhooks/inbox.ts';

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
        description: 'Returns the public key for the SSH server and the encrypted private key for `ssh_tunnel`.',
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
        description: 'Without `limit`, all of them. Secrets are masked.',
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
        description:
          'It is created even if the test fails, so that it can be corrected. The streams of a working source are discovered in the background.',
        status: 201,
        query: UsageRange,
        query_key: 'usage',
        body: CreateAccountConnectorRequest,
        errors: [400, 402],
      }),
    )
    .output(AccountConnectorSchema)
    .mutation(({ ctx, input }) => createAccountConnector(ctx, input)),
  check: act(create)
    .concat(
      rest('POST', '/account_connector_checks', {
        operation_id: 'check_account_connector',
        summary: 'Check the settings of a source or destination before it is created',
        description: 'Refuses them as a create would. Tests no connection and stores nothing.',
        addition: true,
        body: CreateAccountConnectorRequest,
        errors: [400],
      }),
    )
    .output(CheckedAccountConnector)
    .mutation(({ ctx, input }) => checkAccountConnector(ctx, input)),
  tryPage: act(['sources.create', 'sources.update'])
    .concat(
      rest('POST', '/page_trials', {
        operation_id: 'try_page',
        summary: 'Read the first page of a stream while its definition is written',
        description:
          'Returns the requests with secrets hidden, the responses, the records, the inferred fields and the request of the next page. An error of the remote system is part of the result. Nothing is stored.',
        addition: true,
        body: PageTrialRequest,
        errors: [400, 404],
      }),
    )
    .output(PageTrial)
    .mutation(({ ctx, input }) => tryPage(ctx, input)),
  draftDefinition: act(['sources.create', 'sources.update'])
    .concat(
      rest('POST', '/definition_drafts', {
        operation_id: 'draft_definition',
        summary: 'Draft the definition of an API from an OpenAPI document',
        description:
          'Each GET operation that returns a list becomes a stream. Pagination, keys and cursors are guessed from names, and each guess is listed to be confirmed. Nothing is requested or stored.',
        addition: true,
        body: DefinitionDraftRequest,
        max_body_bytes: MAX_DRAFT_BODY_BYTES,
        errors: [400],
      }),
    )
    .output(DefinitionDraft)
    .mutation(({ ctx, input }) => draftDefinition(ctx, input)),
  tryDataset: act('data.preview')
    .concat(
      rest('POST', '/account_connectors/{account_connector_id}/dataset_trials', {
        operation_id: 'try_dataset',
        summary: 'Read the first rows of a query before it is saved as a dataset',
        description:
          'Returns the columns and the first rows, unmasked. Needs the permission to edit the source, too. Nothing is stored.',
        addition: true,
        body: DatasetTrialRequest,
        errors: [400],
      }),
    )
    .output(DatasetTrial)
    .mutation(({ ctx, input }) => tryDataset(ctx, input)),
  beginConsent: act([...create, ...update])
    .concat(
      rest('POST', '/oauth_consents', {
        operation_id: 'begin_oauth_consent',
        summary: 'Begin a consent at the provider of a source, instead of entering its tokens',
        description:
          'Open `url` in a browser of the same person. Once the status is `completed`, create or update the source with `oauth_consent`, within 30 minutes. No response contains the tokens.',
        addition: true,
        status: 201,
        body: BeginConsentRequest,
        errors: [400, 404],
      }),
    )
    .output(BegunConsent)
    .mutation(({ ctx, input }) => beginConsent(ctx, input)),
  consent: read
    .concat(
      rest('GET', '/oauth_consents/{oauth_consent_id}', {
        operation_id: 'get_oauth_consent',
        summary: 'Get the status of a consent that the caller began',
        description:
          'A consent is `pending` until the provider sends the browser back. Consents of other users are 404.',
        addition: true,
      }),
    )
    .output(OAuthConsent)
    .query(({ ctx, input }) => getConsent(ctx, input)),
  get: read
    .concat(
      rest('GET', '/account_connectors/{connector_type}/{account_connector_id}', {
        operation_id: 'get_account_connector',
        summary: 'Get a source or destination',
        description: 'Secrets are masked. The mask sent back means unchanged.',
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
        description: 'Omitted keys stay unchanged. A changed place of the secrets needs the secrets again.',
        body: UpdateAccountConnectorRequest,
        errors: [400, 402],
      }),
    )
    .output(AccountConnectorSchema)
    .mutation(({ ctx, input }) => updateAccountConnector(ctx, input)),
  delete: write(remove)
    .concat(
      rest('DELETE', '/account_connectors/{account_connector_id}', {
        operation_id: 'delete_account_connector',
        summary: 'Delete a source or destination that no connection uses',
        description: 'One that a connection uses is 400 `account_connector_in_use`.',
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
        description: 'Stores the result of the test. A source that passes is discovered in the background.',
        errors: [400],
      }),
    )
    .output(z.string())
    .mutation(({ ctx, input }) => login(ctx, input)),
  testSchema: act('destinations.update')
    .concat(
      rest('POST', '/account_connectors/{account_connector_id}/schema_tests', {
        operation_id: 'test_destination_schema',
        summary: 'Test a destination with the schema of a connection',
        description:
          'Whether tables can be created there, with the statements that grant what is missing. 200 also if the test fails. Nothing is stored.',
        addition: true,
        body: SchemaTestRequest,
        errors: [400],
      }),
    )
    .output(AccountConnectorTest)
    .mutation(({ ctx, input }) => testSchema(ctx, input)),
  catalog: read
    .concat(
      rest('GET', '/account_connectors/{account_connector_id}/catalog', {
        operation_id: 'get_account_connector_catalog',
        summary: 'List the streams and fields of a source',
        description:
          'Streams of the last discovery with the options of their fields, by namespace and name; empty before the first discovery.',
        addition: true,
      }),
    )
    .output(z.array(AccountConnectorCatalogItemSchema))
    .query(({ ctx, input }) => readCatalog(ctx, input)),
  discovery: read
    .concat(
      rest('GET', '/account_connectors/{account_connector_id}/discovery', {
        operation_id: 'get_discovery',
        summary: 'Get the last discovery of a source',
        description: 'Status of the catalog, and of the task that refreshes it.',
        addition: true,
      }),
    )
    .output(Discovery)
    .query(({ ctx, input }) => readDiscovery(ctx, input)),
  discover: write(update)
    .concat(
      rest('POST', '/account_connectors/{account_connector_id}/discover', {
        operation_id: 'discover_catalog',
        summary: 'Refresh the catalog of a source in the background',
        description: 'Returns the id of the task, or of one that is queued already.',
        addition: true,
        errors: [400],
      }),
    )
    .output(z.string())
    .mutation(({ ctx, input }) => orderCatalog(ctx, input)),
  updateCatalog: write(update)
    .concat(
      rest('POST', '/account_connectors/{account_connector_id}/catalog', {
        operation_id: 'update_account_connector_catalog',
        summary: 'Set field options for every connection of a source; returns the catalog',
        description: 'Connections use the options from their next run on.',
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
        description: 'Nothing is stored.',
        body: ValidationRequest,
        errors: [400],
      }),
    )
    .output(ValidationResult)
    .mutation(({ ctx, input }) => validateParameter(ctx, input)),
  secretUses: read
    .concat(
      rest('GET', '/account_connectors/{account_connector_id}/secret_uses', {
        operation_id: 'list_secret_uses',
        summary: 'List where the stored secrets were used, newest first',
        description:
          'One entry for each host that a test, a discovery or an attempt of a stream connected to. `before` continues the list. Needs the permission to edit the source or destination.',
        addition: true,
        query: SecretUsesQuery,
        errors: [403],
      }),
    )
    .output(z.array(SecretUseSchema))
    .query(({ ctx, input }) => listSecretUses(ctx, input)),
  webhookInbox: read
    .concat(
      rest('GET', '/account_connectors/{account_connector_id}/webhook', {
        operation_id: 'get_webhook_inbox',
        summary: 'Get the address of a source that receives events, and what it has received',
        description:
          'Without a signature, callers that know the address can send events. Needs the permission to edit the source.',
        addition: true,
        errors: [400, 403],
      }),
    )
    .output(WebhookInbox)
    .query(({ ctx, input }) => getWebhookInbox(ctx, input)),
  rotateWebhookAddress: write('sources.update')
    .concat(
      rest('POST', '/account_connectors/{account_connector_id}/webhook/rotate', {
        operation_id: 'rotate_webhook_address',
        summary: 'Give a source that receives events a new address',
        description: 'The address before it works for `overlap_hours` more, so that no event is lost meanwhile.',
        addition: true,
        body: RotateWebhookAddressRequest,
        errors: [400],
      }),
    )
    .output(WebhookInbox)
    .mutation(({ ctx, input }) => rotateWebhookAddress(ctx, input)),
  differingParameters: act(update)
    .concat(
      rest('POST', '/account_connectors/{account_connector_id}/differing_parameters', {
        operation_id: 'list_differing_parameters',
        summary: 'List the parameters that an update with these values would change',
        description: 'Compares secrets without showing them.',
        addition: true,
        body: ComparedParameters,
        errors: [400],
      }),
    )
    .output(z.array(z.string()))
    .mutation(({ ctx, input }) => differingParameters(ctx, input)),
  task: read
    .concat(
      rest('GET', '/tasks/{task_id}', {
        operation_id: 'get_task',
        summary: 'Get a background task',
        description: 'A discovery or an export: its status, and the error of a failed one.',
        addition: true,
      }),
    )
    .output(TaskSchema)
    .query(({ ctx, input }) => readTask(ctx, input)),
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
    .concat(
      rest('POST', '/tasks/{task_id}/export_link', {
        operation_id: 'create_export_link',
        summary: 'Create a link to the file of a finished export',
        description: 'The link works for ten minutes. The file is kept for a day.',
        addition: true,
      }),
    )
    .output(ExportLink)
    .mutation(({ ctx, input }) => exportLink(ctx, input)),
});
