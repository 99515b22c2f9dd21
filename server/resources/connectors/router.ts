import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { read, router } from '../../api/procedure.ts';
import { ConnectorType } from '../../api/wire-types.ts';
import { ConnectorSchema } from './schema.ts';
import { getConnector, listConnectors } from './service.ts';

export const connectorsRouter = router({
  list: read
    .concat(
      rest('GET', '/connectors', {
        operation_id: 'list_connectors',
        summary: 'List connectors',
        description: 'Sources, then destinations, each by name.',
      }),
    )
    .output(z.array(ConnectorSchema))
    .query(() => listConnectors()),
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
