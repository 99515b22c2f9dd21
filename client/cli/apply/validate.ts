import type { ApiClient } from '../../api.ts';
import { UsageError } from '../exit.ts';
import { type Current, findNamed } from './current.ts';
import type { Wanted } from './document.ts';
import { withLocation } from './location.ts';
import { connectionRequest, connectorRequest } from './requests.ts';

// Bodies come from the file unchecked; the service validates them.
type Unchecked = never;

/**
 * Lets the service check an item that is to be created or changed, so that a plan is refused before anything is applied.
 * What depends on items that do not exist yet is checked when it is created.
 * @throws UsageError with the location in the file.
 */
export async function validate(api: ApiClient, one: Wanted, current: Current): Promise<void> {
  try {
    if (one.kind === 'triggers') await checkRule(api, one);
    else if (one.kind === 'connections') await checkConnection(api, one, current);
    else if (one.kind !== 'roles' && one.kind !== 'users' && !findNamed(current, one.kind, one.name))
      await api.account_connectors.check.mutate(connectorRequest(one) as Unchecked);
  } catch (error) {
    throw withLocation(one, error);
  }
}

async function checkRule(api: ApiClient, { body, at }: Wanted): Promise<void> {
  if (typeof body.rule !== 'string') return;
  const { is_valid, error } = await api.automation.evaluateRule.mutate({ rule: body.rule, limit: 1 });
  if (!is_valid) throw new UsageError(`${at(['rule'])}: ${error?.message} (${error?.code})`);
}

async function checkConnection(api: ApiClient, one: Wanted, current: Current): Promise<void> {
  const { schedule, streams, destination_schema, table_prefix } = connectionRequest(one.body);
  if (schedule !== undefined) await api.connections.previewSchedule.query({ schedule } as Unchecked);
  const source = findNamed(current, 'sources', one.body.source);
  const destination = findNamed(current, 'destinations', one.body.destination);
  const isNew = findNamed(current, 'connections', one.name) === undefined;
  if (!isNew || !source || !destination || source.catalog_status !== 'ready') return;
  const sides = { source_id: source.id, destination_id: destination.id };
  const settings = { destination_schema, table_prefix, streams };
  const findings = await api.connections.check.mutate({ ...sides, ...settings } as Unchecked);
  if (findings.length === 0) return;
  const lines = findings.map(({ field, stream_name, message, code }) => {
    const place = one.at(field.split('.'));
    return `${place}: ${stream_name ? `${stream_name}: ` : ''}${message} (${code})`;
  });
  throw new UsageError(lines.join('\n'));
}
