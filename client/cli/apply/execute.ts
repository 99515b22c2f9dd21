import type { ApiClient } from '../../api.ts';
import { Refused } from '../exit.ts';
import { type Current, findNamed } from './current.ts';
import type { Kind, Wanted } from './document.ts';
import { connectionRequest, placed, type Step, triggerRequest } from './plan.ts';

const CATALOG_PATIENCE_MS = 120_000;
const LOOK_EVERY_MS = 300;

/** Takes one step, whole or not at all; notes in `current` what it made. @throws with the place in the file. */
export async function takeStep(api: ApiClient, step: Step, current: Current): Promise<void> {
  if (step.action === 'delete') return remove(api, step);
  try {
    if (step.action === 'create') await create(api, step.wanted, current);
    else await update(api, step, current);
  } catch (error) {
    throw placed(step.wanted, error);
  }
}

// The bodies are the file's: the service tells what is wrong with them.
type Loose = never;

async function create(api: ApiClient, wanted: Wanted, current: Current): Promise<void> {
  const { kind, name, body } = wanted;
  if (kind === 'triggers') {
    current.triggers.push(
      await api.automation.createTrigger.mutate({ ...triggerRequest(body, current), name } as Loose),
    );
  } else if (kind === 'connections') {
    const source_id = findNamed(current, 'sources', body.source)!.id;
    const destination_id = findNamed(current, 'destinations', body.destination)!.id;
    await catalogIsReady(api, source_id);
    const request = { ...connectionRequest(body), name, source_id, destination_id };
    current.connections.push(await api.connections.create.mutate(request as Loose));
  } else {
    current[kind].push(await createConnector(api, wanted));
  }
}

async function createConnector(api: ApiClient, { kind, name, body: { connector, ...body } }: Wanted) {
  const connector_type = kind === 'sources' ? 'source' : 'destination';
  const made = await api.account_connectors.create.mutate({
    ...body,
    name,
    connector_type,
    connector_name: connector,
  } as Loose);
  if (made.status !== 'broken') return made;
  // The service keeps what does not work; a file that says it again would find nothing to change.
  await api.account_connectors.delete.mutate({ account_connector_id: made.id });
  throw new Refused(
    'failed',
    `${connector_type} "${name}" does not work and was not kept: ${failures(made.last_test)}`,
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
  if (kind === 'triggers') {
    await api.automation.updateTrigger.mutate({ ...triggerRequest(body, current), name, trigger_id: id });
  } else if (kind === 'connections') {
    const request = connectionRequest(body);
    const mode = request.streams ? { streams_mode: 'replace' } : {};
    await api.connections.update.mutate({ ...request, ...mode, name, revision, connection_id: id } as Loose);
  } else {
    const { connector: _connector, ...changes } = body;
    const changed = await api.account_connectors.update.mutate({
      ...changes,
      name,
      revision,
      account_connector_id: id,
    });
    if (changed.status === 'broken')
      throw new Refused('failed', `"${name}" was changed and does not work any more: ${failures(changed.last_test)}`);
  }
}

async function remove(api: ApiClient, { kind, id }: { kind: Kind; id: string }): Promise<void> {
  if (kind === 'triggers') await api.automation.deleteTrigger.mutate({ trigger_id: id });
  else if (kind === 'connections') await api.connections.delete.mutate({ connection_id: id });
  else await api.account_connectors.delete.mutate({ account_connector_id: id });
}

/** Streams of a new source are known only after its catalog was read, in the background. */
async function catalogIsReady(api: ApiClient, account_connector_id: string): Promise<void> {
  const deadline = performance.now() + CATALOG_PATIENCE_MS;
  for (;;) {
    const source = await api.account_connectors.get.query({ connector_type: 'source', account_connector_id });
    if (source.catalog_status === 'ready') return;
    if (source.catalog_status === 'failed' || performance.now() > deadline) {
      throw new Refused(
        'failed',
        `The catalog of "${source.name}" cannot be had (${source.catalog_status}): ${source.status_message ?? ''}`,
      );
    }
    await Bun.sleep(LOOK_EVERY_MS);
  }
}
