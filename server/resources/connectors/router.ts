import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { read, router } from '../../api/procedure.ts';
import { ConnectorType } from '../../api/wire-types.ts';
import { connectorRights, ConnectorRights, ConnectorRightsRequest } from './rights.ts';
import { ConnectorSchema } from './schema.ts';
import { getConnector, listConnectors } from './service.ts';

export const connectorsRouter = router({
  list: read
    .concat(
      rest('GET', '/connectors', {
        operation_id: 'list_connectors',
        summary: 'List connectors',
        description:
          'Sources, then destinations, each by name. Those that the account has added are named `custom.` and their name.',
      }),
    )
    .output(z.array(ConnectorSchema))
    .query(({ ctx }) => listConnectors(ctx)),
  rights: read
    .concat(
      rest('POST', '/connector_rights', {
        operation_id: 'describe_connector_rights',
        summary: 'List the statements that grant a user what a connector needs',
        description: 'With the user, the database and the schemas of the given parameters. Nothing is sent or stored.',
        addition: true,
        body: ConnectorRightsRequest,
        errors: [404],
      }),
    )
    .output(ConnectorRights)
    .query(({ ctx, input }) => connectorRights(ctx, input)),
  get: read
    .concat(
      rest('GET', '/connectors/{connector_type}/{connector_name}', {
        operation_id: 'get_connector',
        summary: 'Get a connector with its parameters',
        description: 'Parameters are in the order of a form.',
        path: { connector_type: ConnectorType },
        query: z.object({ connector_id: z.string().optional() }),
        errors: [400],
      }),
    )
    .output(ConnectorSchema)
    .query(({ ctx, input }) => getConnector(ctx, input)),
});
