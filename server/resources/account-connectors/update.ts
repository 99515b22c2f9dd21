import { and, eq, isNull } from 'drizzle-orm';
import { type AccountConnectorRow, accountConnectors } from '../../../db/schema/index.ts';
import type { AnyConnector } from '../../connectors/contract/connector.ts';
import { secretNames } from '../../connectors/contract/parameters.ts';
import { findConnector } from '../../connectors/registry.ts';
import { openParameters } from '../../connector-runtime/connector-secrets.ts';
import type { StoredTunnel } from '../../connector-runtime/tunnel-settings.ts';
import { badRequest } from '../../platform/errors.ts';
import { actorOf, type Ctx, requirePermission } from '../../api/procedure.ts';
import { connectorId } from '../../api/connector-id.ts';
import { refuseOtherDocuments } from '../access/custom-connectors.ts';
import { discoverCatalogTask } from '../access/discovery-task.ts';
import { refuseWhileRunning } from '../access/live-runs.ts';
import { requireRecentSignIn } from '../access/step-up.ts';
import { refuseDuplicateName } from '../../api/duplicate-name.ts';
import { emitAccountConnectorEvent, emitTransition } from './events.ts';
import { checkParameters, sealParameters, sensitiveChange } from './parameters.ts';
import { findAccountConnector, getAccountConnector } from './query.ts';
import { requireSecretsAgain } from './secrets/redirected-secrets.ts';
import type { AccountConnectorSchema, UpdateAccountConnectorRequest } from './schema.ts';
import { refuseUnsupported } from './settings.ts';
import type { GivenConsent } from './consents/schema.ts';
import { spendConsent, withConsent } from './consents/use.ts';
import { checkOwnSshKey } from './ssh-key.ts';
import { testRow } from '../../connector-runtime/test-outcome.ts';
import { tunnelAfter } from './tunnel.ts';

type Changes = Partial<AccountConnectorRow>;
/** Columns derived from others. */
const UNTOLD = ['secrets', 'status', 'announced_days'];

/**
 * Updates a source or destination. A changed host or credentials are tested (`test_connection`) before the transaction.
 * If the row was changed in the meantime, the update fails with `stale_revision`.
 */
export async function updateAccountConnector(
  ctx: Ctx,
  input: UpdateAccountConnectorRequest & { account_connector_id: string },
): Promise<AccountConnectorSchema> {
  const row = await findAccountConnector(ctx, input.account_connector_id, false);
  requirePermission(ctx, `${row.connector_type}s.update`);
  refuseStaleOrImmutable(row, input);
  const connector = findConnector(row.connector_type as 'source', row.connector_name);
  if (!connector) throw badRequest('unknown_connector', `Connector "${row.connector_name}" is no longer available`);
  await checkOwnSshKey(ctx, input.ssh_tunnel);
  const changing = { row, connector, input: await consented(ctx, { row, connector, input }) };
  const { changes, retest } = await changesOf(ctx, changing);
  refuseUnsupported(connector, input);
  const changed_fields = Object.keys(changes).filter((key) => !UNTOLD.includes(key));
  if (changed_fields.length === 0) return getAccountConnector(ctx, input);
  if (retest) await refuseWhileRunning(ctx, [row.id], 'Host and credentials');
  const tested = retest && changes.status === 'pending_test' && input.test_connection !== false;
  const outcome = tested ? (await testRow(ctx.deps, { ...row, ...changes }, actorOf(ctx.principal))).outcome : {};
  await ctx.db.transaction((db) =>
    store({ ...ctx, db }, row, {
      changes: { ...changes, ...outcome },
      changed_fields,
      retest,
      consent: input.oauth_consent,
    }),
  );
  return getAccountConnector(ctx, input);
}

async function consented(
  ctx: Ctx,
  {
    row,
    connector,
    input,
  }: { row: AccountConnectorRow; connector: AnyConnector; input: UpdateAccountConnectorRequest },
): Promise<UpdateAccountConnectorRequest> {
  const { oauth_consent: consent, parameters: given = {} } = input;
  if (!consent) return input;
  const stored = openParameters(ctx.deps, row);
  const use = { connector, consent, account_connector_id: row.id, given, stored };
  return { ...input, parameters: await withConsent(ctx, use) };
}

function refuseStaleOrImmutable(row: AccountConnectorRow, input: UpdateAccountConnectorRequest): void {
  if (input.revision !== undefined && input.revision !== row.revision) throw stale(row.revision);
  const identity = {
    connector_type: row.connector_type,
    connector_name: row.connector_name,
    connector_id: connectorId({ type: row.connector_type, name: row.connector_name }),
  };
  for (const [field, value] of Object.entries(identity)) {
    const given = input[field as keyof typeof identity];
    if (given === undefined || given === value) continue;
    throw badRequest('immutable_field', `${field} cannot be changed`, { field });
  }
}

const stale = (revision: number | null) =>
  badRequest('stale_revision', 'The source or destination was changed in the meantime', { revision });

async function changesOf(
  ctx: Ctx,
  change: { row: AccountConnectorRow; connector: AnyConnector; input: UpdateAccountConnectorRequest },
): Promise<{ changes: Changes; retest: boolean }> {
  const { row, connector, input } = change;
  const changes: Changes = {};
  if (input.name !== undefined && input.name !== row.name) changes.name = input.name;
  if (input.owner !== undefined && input.owner !== row.owner) changes.owner = input.owner;
  const method = connector.auth_methods.find((one) => one === input.auth_method);
  if (method && method !== row.auth_method) changes.auth_method = method;
  if (input.datasets && !Bun.deepEquals(input.datasets, row.datasets)) changes.datasets = input.datasets;
  if (input.credentials_expire_at !== undefined) Object.assign(changes, expiryChange(row, input.credentials_expire_at));
  const tunnel = row.ssh_tunnel as StoredTunnel | null;
  const ssh_tunnel = tunnelAfter(ctx, input.ssh_tunnel, tunnel);
  const tunnelled = !Bun.deepEquals(tunnel, ssh_tunnel);
  if (tunnelled) changes.ssh_tunnel = ssh_tunnel;
  if (!input.parameters && !tunnelled) return { changes, retest: false };
  const before = openParameters(ctx.deps, row);
  refuseOtherDocuments(row.connector_name, input.parameters ?? {}, before);
  const { all, lacks_credentials } = await checkParameters(ctx, connector, input.parameters ?? {}, before);
  const known = Object.fromEntries(Object.entries(all).filter(([, value]) => value != null));
  const same = Bun.deepEquals(before, known);
  const given = input.parameters ?? {};
  requireSecretsAgain(connector, { before, after: all, given, tunnels: [tunnel, ssh_tunnel] });
  if (!same) Object.assign(changes, sealParameters(ctx.deps, connector, { row, all }));
  if (tunnelled || secretNames(connector.config).some((name) => !Bun.deepEquals(before[name], known[name]))) {
    requireRecentSignIn(ctx);
  }
  const retest = tunnelled || (!same && sensitiveChange(connector, before, all));
  // The expiry of new credentials is unknown.
  if (retest && !same && input.credentials_expire_at === undefined) Object.assign(changes, expiryChange(row, null));
  if (retest)
    Object.assign(changes, { status: lacks_credentials ? 'pending_auth' : 'pending_test', failure_streak: 0 });
  return { changes, retest };
}

const expiryChange = (row: AccountConnectorRow, credentials_expire_at: string | null): Changes =>
  credentials_expire_at === row.credentials_expire_at ? {} : { credentials_expire_at, announced_days: [] };

async function store(
  ctx: Ctx,
  row: AccountConnectorRow,
  change: { changes: Changes; changed_fields: string[]; retest: boolean; consent: GivenConsent | undefined },
): Promise<void> {
  const { changes, changed_fields, retest } = change;
  const storing = ctx.db
    .update(accountConnectors)
    .set({ ...changes, revision: row.revision + 1 })
    .where(
      and(
        eq(accountConnectors.id, row.id),
        eq(accountConnectors.revision, row.revision),
        isNull(accountConnectors.deleted_at),
      ),
    )
    .returning();
  const [changed] = await refuseDuplicateName(row.connector_type, storing);
  if (!changed) throw stale(null);
  if (change.consent) await spendConsent(ctx.db, change.consent);
  await emitAccountConnectorEvent(ctx, 'account_connector_updated', { row: changed, changed_fields });
  await emitTransition(ctx, row.status, changed);
  const other_streams = retest || changes.datasets !== undefined;
  if (other_streams && changed.connector_type === 'source' && changed.status === 'active') {
    await discoverCatalogTask(ctx, { account_connector_id: row.id, connection_id: null });
  }
}
