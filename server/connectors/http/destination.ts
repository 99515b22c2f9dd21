import { type CheckResult, type ConnectorContext, defineDestination } from '../contract/connector.ts';
import { addressFor, clientOf } from './service.ts';
import { HttpDestinationConfig } from './settings.ts';
import { openHttpWriter } from './writer.ts';

export const httpDestination = defineDestination<HttpDestinationConfig>({
  type: 'destination',
  name: 'http',
  display_name: 'HTTP endpoint',
  description: 'Rows sent in batches of JSON to any address, each batch with an idempotency key',
  category: 'http',
  version: '1.0.0',
  release_stage: 'generally_available',
  auth_methods: ['none', 'api_key', 'basic', 'oauth2'],
  supported_destination_sync_modes: ['append', 'append_dedup'],
  capabilities: { at_least_once: true },
  config: HttpDestinationConfig,
  check,
  open: openHttpWriter,
});

/** A service may know no other method than the one that takes rows: that it says so shows that it is there. */
const NOT_THIS_WAY = [400, 404, 405, 415, 422, 501];

async function check(ctx: ConnectorContext<HttpDestinationConfig>): Promise<CheckResult> {
  const { check_method: method, headers } = ctx.config;
  if (method === 'none') {
    return { checks: [{ title: 'Connection', status: 'skipped', message: 'No request was sent' }] };
  }
  const client = clientOf(ctx, { hurry: true });
  const answer = await client.send({ method, url: addressFor(ctx.config, 'check'), headers, body: null }, NOT_THIS_WAY);
  return {
    checks: [{ title: 'Connection', status: 'passed', message: `${method} was answered with ${answer.status}` }],
  };
}
