import { type CheckResult, type ConnectorContext, defineDestination } from '../contract/connector.ts';
import { clientOf, urlFor } from './service.ts';
import { HttpDestinationConfig } from './settings.ts';
import { identifyRows } from './identity.ts';
import { openHttpWriter } from './writer.ts';

export const httpDestination = defineDestination<HttpDestinationConfig>({
  type: 'destination',
  name: 'http',
  display_name: 'HTTP endpoint',
  description: 'Sends rows as batches of JSON to any URL, each with an idempotency key',
  category: 'http',
  version: '1.0.0',
  release_stage: 'generally_available',
  auth_methods: ['none', 'api_key', 'basic', 'oauth2'],
  supported_destination_sync_modes: ['append', 'append_dedup'],
  capabilities: { at_least_once: true },
  config: HttpDestinationConfig,
  check,
  identifyRows,
  open: openHttpWriter,
});

/** A service may accept nothing but rows. That it refuses the test request shows that it is reachable. */
const REFUSED_METHOD = [400, 404, 405, 415, 422, 501];

async function check(ctx: ConnectorContext<HttpDestinationConfig>): Promise<CheckResult> {
  const { check_method: method, headers } = ctx.config;
  if (method === 'none') {
    return { checks: [{ title: 'Connection', status: 'skipped', message: 'No request was sent' }] };
  }
  const client = clientOf(ctx, { interactive: true });
  const { status } = await client.send(
    { method, url: urlFor(ctx.config, 'check'), headers: headers ?? {}, body: null },
    { statuses: REFUSED_METHOD },
  );
  return {
    checks: [{ title: 'Connection', status: 'passed', message: `${method} returned ${status}` }],
  };
}
