import { setTimeout } from 'node:timers/promises';
import type { ApiClient } from '../../api.ts';
import { CommandError } from '../exit.ts';
import { type Current, findNamed } from './current.ts';
import type { Wanted } from './document.ts';
import type { Kind } from '../../pipeline-file/keys.ts';
import { withLocation } from './location.ts';
import type { Step } from './plan.ts';
import { connectionRequest, connectorRequest, triggerRequest, userRequest } from './requests.ts';

const CATALOG_TIMEOUT_MS = 120_000;
const POLL_INTERVAL_MS = 300;

/** Applies one step and records a created item in `current`. @throws with the location in the file. */
export async function applyStep(api: ApiClient, step: Step, current: Current): Promise<void> {
  if (step.action === 'delete') return remove(api, step);
  try {
    if (step.action === 'create') await create(api, step.wanted, current);
    else await update(api, step, current);
  } catch (error) {
    throw withLocation(step.wanted, error);
  }
}

// Bodies come from the file unchecked; the service validates them.
type Unchecked = never;

async function create(api: ApiClient, wanted: Wanted, current: Current): Promise<void> {
  const { kind, name, body } = wanted;
  if (kind === 'roles') {
    current.roles.push(await api.roles.create.mutate({ ...body, name } as Unchecked));
  } else if (kind === 'users') {
    // Invited later, by `users invite` or the console: the link is shown once and does not belong into a log.
    const request = { full_name: name.split('@')[0], ...userRequest(wanted, current), email: name };
    await api.users.create.mutate({ ...request, send_invitation: false } as Unchecked);
  } else if (kind === 'triggers') {
    current.triggers.push(
      await api.automation.createTrigger.mutate({ ...triggerRequest(body, current), name } as Unchecked),
    );
  } else if (kind === 'connections') {
    const source_id = findNamed(current, 'sources', body.source)!.id;
    const destination_id = findNamed(current, 'destinations', body.destination)!.id;
    await waitForCatalog(api, source_id);
    const request = { ...connectionRequest(body), name, source_id, destination_id };
    current.connections.push(await api.connections.create.mutate(request as Unchecked));
  } else {
    current[kind].push(await createConnector(api, wanted));
  }
}

async function createConnector(api: ApiClient, wanted: Wanted) {
  const created = await api.account_connectors.create.mutate(connectorRequest(wanted) as Unchecked);
  if (created.status !== 'broken') return created;
  const { connector_type, name } = created;
  // The service keeps a broken connector, and the next `apply` would find nothing to change: delete it.
  await api.account_connectors.delete.mutate({ account_connector_id: created.id });
  throw new CommandError(
    'failed',
    `${connector_type} "${name}" did not pass its test and was not saved: ${failures(created.last_test)}`,
  );
}

const failures = (test: { checks: { status: string; title: string; message: string | null }[] } | null) =>
  (test?.checks ?? [])
    .filter(({ status }) => status === 'failed')
    .map(({ title, message }) => `${title}: ${message}`)
    .join('; ');

async function update(api: ApiClient, step: Extract<Step, { action: 'update' }>, current: Current): Promise<void> {
  const { id, revision } = step;
  const { kind, name, body } = step.wanted;
  if (kind === 'roles') {
    await api.roles.update.mutate({ ...body, name, role_id: id });
  } else if (kind === 'users') {
    await api.users.update.mutate({ ...userRequest(step.wanted, current), user_id: id });
  } else if (kind === 'triggers') {
    await api.automation.updateTrigger.mutate({ ...triggerRequest(body, current), name, trigger_id: id });
  } else if (kind === 'connections') {
    const request = connectionRequest(body);
    const mode = request.streams ? { streams_mode: 'replace' } : {};
    await api.connections.update.mutate({ ...request, ...mode, name, revision, connection_id: id } as Unchecked);
  } else {
    const { connector: _connector, ...changes } = body;
    const changed = await api.account_connectors.update.mutate({
      ...changes,
      name,
      revision,
      account_connector_id: id,
    });
    if (changed.status === 'broken')
      throw new CommandError(
        'failed',
        `"${name}" was updated but no longer passes its test: ${failures(changed.last_test)}`,
      );
  }
}

async function remove(api: ApiClient, { kind, id }: { kind: Kind; id: string }): Promise<void> {
  if (kind === 'triggers') await api.automation.deleteTrigger.mutate({ trigger_id: id });
  else if (kind === 'connections') await api.connections.delete.mutate({ connection_id: id });
  else await api.account_connectors.delete.mutate({ account_connector_id: id });
}

/** The streams of a new source are known once the background refresh of its catalog has finished. */
async function waitForCatalog(api: ApiClient, account_connector_id: string): Promise<void> {
  const deadline = performance.now() + CATALOG_TIMEOUT_MS;
  for (;;) {
    const source = await api.account_connectors.get.query({ connector_type: 'source', account_connector_id });
    if (source.catalog_status === 'ready') return;
    if (source.catalog_status === 'failed' || performance.now() > deadline) {
      throw new CommandError(
        'failed',
        `The catalog of "${source.name}" is not available (${source.catalog_status}): ${source.status_message ?? 'timed out'}`,
      );
    }
    await setTimeout(POLL_INTERVAL_MS);
  }
}
