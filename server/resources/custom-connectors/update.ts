import { and, eq, isNull } from 'drizzle-orm';
import { accountConnectors, type CustomConnectorRow, customConnectors } from '../../../db/schema/index.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { transitionEvent } from '../../connector-runtime/test-outcome.ts';
import type { ConnectorOutline } from '../../connectors/contract/connector.ts';
import { emitConnectorEvent } from '../../events/account-connector-events.ts';
import { badRequest } from '../../platform/errors.ts';
import { documentParameters, findCustomConnector } from '../access/custom-connectors.ts';
import { discoverCatalogTask } from '../access/discovery-task.ts';
import { refuseWhileRunning } from '../access/live-runs.ts';
import { requireRecentSignIn } from '../access/step-up.ts';
import { type ExaminedSource, examineSources, isBroken, sourcesOf, withoutDocuments } from './affected-sources.ts';
import { compareOutlines } from './compare-outlines.ts';
import { getOwnConnector } from './query.ts';
import { type ReadConnector, readConnector } from './read-documents.ts';
import type {
  CustomConnectorPreview,
  CustomConnectorSchema,
  ManifestChange,
  PreviewCustomConnectorRequest,
  UpdateCustomConnectorRequest,
} from './schema.ts';

interface Examined {
  read: ReadConnector;
  changes: ManifestChange[];
  sources: ExaminedSource[];
}

async function examine(ctx: Ctx, row: CustomConnectorRow, read: ReadConnector): Promise<Examined> {
  const changes = compareOutlines(row.outline as unknown as ConnectorOutline, read.outline);
  return { read, changes, sources: await examineSources(ctx, row, { read, changes }) };
}

/** What an update would change, by the manifest of the request or at the stored address. Stores nothing. */
export async function previewCustomConnector(
  ctx: Ctx,
  input: PreviewCustomConnectorRequest & { connector_name: string },
): Promise<CustomConnectorPreview> {
  const row = await findCustomConnector(ctx, input.connector_name);
  const { unsupported } = row.outline as unknown as ConnectorOutline;
  const read = await readConnector(ctx, input, row);
  if (read === null || read.digest === row.digest) {
    const { length: sources_count } = await sourcesOf(ctx, row);
    return { digest: row.digest, is_changed: false, changes: [], unsupported, sources: [], sources_count };
  }
  const { changes, sources } = await examine(ctx, row, read);
  return {
    digest: read.digest,
    is_changed: true,
    changes,
    unsupported: read.outline.unsupported,
    sources: sources.map(({ effect }) => effect).filter(isBroken),
    sources_count: sources.length,
  };
}

/**
 * Updates a connector, and with `digest` the manifest of all its sources at once.
 * @throws ApiError 400 `digest_missing`, `connector_changed`, `breaking_update`, `run_active`, `stale_revision`
 */
export async function updateCustomConnector(
  ctx: Ctx,
  input: UpdateCustomConnectorRequest & { connector_name: string },
): Promise<CustomConnectorSchema> {
  const row = await findCustomConnector(ctx, input.connector_name);
  if (input.revision !== undefined && input.revision !== row.revision) throw stale();
  const examined = await examinedUpdate(ctx, row, input);
  const { display_name, description, icon, documentation_url } = input;
  const shown = Object.fromEntries(
    Object.entries({ display_name, description, icon, documentation_url }).filter(([, value]) => value !== undefined),
  );
  if (examined) requireRecentSignIn(ctx);
  await ctx.db.transaction(async (db) => {
    const inside = { ...ctx, db };
    const { outline, ...documents } = examined?.read ?? { outline: null };
    const [changed] = await db
      .update(customConnectors)
      .set({
        ...shown,
        ...(outline && { ...documents, outline: { ...outline }, version: row.version + 1 }),
        revision: row.revision + 1,
      })
      .where(and(eq(customConnectors.id, row.id), eq(customConnectors.revision, row.revision)))
      .returning({ id: customConnectors.id });
    if (!changed) throw stale();
    if (examined) await updateSources(inside, row, examined);
  });
  return getOwnConnector(ctx, input);
}

const stale = () => badRequest('stale_revision', 'The connector was changed in the meantime');

/** Null: the manifest stays. */
async function examinedUpdate(
  ctx: Ctx,
  row: CustomConnectorRow,
  input: UpdateCustomConnectorRequest,
): Promise<Examined | null> {
  const { digest, manifest, components, files, manifest_url, components_url } = input;
  if (digest === undefined) {
    const isGiven = [manifest, components, files, manifest_url, components_url].some((one) => one !== undefined);
    if (!isGiven) return null;
    throw badRequest('digest_missing', 'Preview the update, and send the digest of the preview', { field: 'digest' });
  }
  const read = await readConnector(ctx, input, row);
  if ((read?.digest ?? row.digest) !== digest) {
    throw badRequest('connector_changed', 'The manifest is not the one of the preview. Preview the update again', {
      field: 'digest',
    });
  }
  if (read === null || read.digest === row.digest) return null;
  const examined = await examine(ctx, row, read);
  const broken = examined.sources.filter(({ effect }) => isBroken(effect));
  if (broken.length > 0 && !input.accept_breaking) {
    const names = broken.map(({ effect }) => `"${effect.name}"`).join(', ');
    throw badRequest('breaking_update', `The update would break ${names}. Set accept_breaking to update nevertheless`, {
      field: 'accept_breaking',
      sources: broken.map(({ effect }) => effect),
    });
  }
  return examined;
}

/** Gives all sources the new manifest. Those that were not examined, or have changed since, end the update. */
async function updateSources(ctx: Ctx, row: CustomConnectorRow, { read, sources }: Examined): Promise<void> {
  const now = await sourcesOf(ctx, row).for('no key update');
  const revisions = (rows: { id: string; revision: number }[]) => rows.map((one) => `${one.id}:${one.revision}`).join();
  if (revisions(now) !== revisions(sources.map((one) => one.row))) {
    throw badRequest('connector_changed', 'A source of the connector was changed in the meantime. Try again');
  }
  await refuseWhileRunning(
    ctx,
    now.map(({ id }) => id),
    'The manifest',
  );
  for (const source of sources) await updateSource(ctx, source, read);
}

async function updateSource(ctx: Ctx, { row, effect }: ExaminedSource, read: ReadConnector): Promise<void> {
  const { secrets: masked, ...rest } = withoutDocuments(row.parameters);
  const keeps = masked !== undefined && !effect.needs_secrets;
  const [changed] = await ctx.db
    .update(accountConnectors)
    .set({
      parameters: { ...rest, ...documentParameters(read), ...(keeps && { secrets: masked }) },
      ...(effect.needs_secrets && { secrets: null }),
      ...statusAfter(effect),
      revision: row.revision + 1,
    })
    .where(and(eq(accountConnectors.id, row.id), isNull(accountConnectors.deleted_at)))
    .returning();
  if (!changed) return;
  const actor = actorOf(ctx.principal);
  const facts = { row: changed, actor, extra: { changed_fields: ['parameters'] } };
  await emitConnectorEvent(ctx.db, { ...facts, event: 'account_connector_updated', sentence: 'has a new manifest' });
  const event = transitionEvent(row.status, changed.status);
  if (event) await emitConnectorEvent(ctx.db, { ...facts, event, sentence: 'does not fit its new manifest' });
  if (changed.status === 'active')
    await discoverCatalogTask(ctx, { account_connector_id: row.id, connection_id: null });
}

function statusAfter({ needs_secrets, problems: [problem] }: ExaminedSource['effect']) {
  if (needs_secrets) {
    const status_message = 'The new manifest sends requests to other places. Enter the secrets again';
    return { status: 'pending_auth' as const, status_reason: 'secrets_required', status_message };
  }
  if (problem === undefined) return {};
  return { status: 'broken' as const, status_reason: 'invalid_parameter', status_message: problem };
}
