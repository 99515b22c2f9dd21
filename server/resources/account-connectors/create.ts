import { type AccountConnectorRow, accountConnectors } from '../../../db/schema/index.ts';
import { actorOf, type Ctx, requirePermission } from '../../api/procedure.ts';
import { keepCustomConnector, parametersOfConnector } from '../access/custom-connectors.ts';
import { discoverCatalogTask } from '../access/discovery-task.ts';
import { requireRecentSignIn } from '../access/step-up.ts';
import { refuseDuplicateName } from '../../api/duplicate-name.ts';
import { accountPlan, checkLimit } from '../access/account-plan.ts';
import { checkUsageRange, type UsageInput } from '../../api/usage-range.ts';
import { emitAccountConnectorEvent, emitTransition } from './events.ts';
import { checkParameters, sealParameters } from './parameters.ts';
import { getAccountConnector } from './query.ts';
import type { AccountConnectorSchema, CheckedAccountConnector, CreateAccountConnectorRequest } from './schema.ts';
import { namedConnector, refuseUnsupported } from './settings.ts';
import { checkOwnSshKey } from './ssh-key.ts';
import { testRow } from '../../connector-runtime/test-outcome.ts';
import { tunnelAfter } from './tunnel.ts';
import { spendConsent, withConsent } from './consents/use.ts';
import { draftRow } from '../access/draft-row.ts';
import { openInbox } from './webhooks/inbox.ts';

/**
 * Creates a source or destination and tests it, unless `test_connection` is false. It is created even if the
 * test fails, so that the user can fix it. Streams of a working source are discovered in the background.
 */
export async function createAccountConnector(
  ctx: Ctx,
  input: CreateAccountConnectorRequest & UsageInput,
): Promise<AccountConnectorSchema> {
  requirePermission(ctx, `${input.connector_type}s.create`);
  checkUsageRange(input.usage);
  await checkOwnSshKey(ctx, input.ssh_tunnel);
  const draft = await draftOf(ctx, await consented(ctx, input));
  if (draft.secrets !== null || draft.ssh_tunnel !== null) requireRecentSignIn(ctx);
  const tested = input.test_connection && draft.status !== 'pending_auth';
  const row = tested ? { ...draft, ...(await testRow(ctx.deps, draft, actorOf(ctx.principal))).outcome } : draft;
  await ctx.db.transaction(async (db) => {
    const inside = { ...ctx, db };
    await checkLimit(inside, await accountPlan(inside), { limit: `max_${row.connector_type}s`, range: input.usage });
    await refuseDuplicateName(input.connector_type, db.insert(accountConnectors).values(row));
    await keepCustomConnector(inside, row);
    await openInbox(db, row);
    if (input.oauth_consent) await spendConsent(db, input.oauth_consent);
    await emitAccountConnectorEvent(inside, 'account_connector_created', { row });
    await emitTransition(inside, null, row);
    if (row.connector_type === 'source' && row.status === 'active') {
      await discoverCatalogTask(inside, { account_connector_id: row.id, connection_id: null });
    }
  });
  return getAccountConnector(ctx, { account_connector_id: row.id });
}

async function consented(ctx: Ctx, input: CreateAccountConnectorRequest): Promise<CreateAccountConnectorRequest> {
  const { oauth_consent: consent, parameters: given } = input;
  if (!consent) return input;
  const connector = namedConnector(ctx, input);
  const stored = await parametersOfConnector(ctx, input);
  const use = { connector, consent, account_connector_id: null, given, stored };
  return { ...input, parameters: await withConsent(ctx, use) };
}

/**
 * Refuses what a create would refuse, except for a failed test and a name in use. Stores nothing and asks no other
 * system.
 */
export async function checkAccountConnector(
  ctx: Ctx,
  input: CreateAccountConnectorRequest,
): Promise<CheckedAccountConnector> {
  requirePermission(ctx, `${input.connector_type}s.create`);
  const { status } = await draftOf(ctx, input);
  return { lacks_credentials: status === 'pending_auth' };
}

/** The account connector that a create with these settings would store. @throws ApiError 400 */
export async function draftOf(ctx: Ctx, input: CreateAccountConnectorRequest): Promise<AccountConnectorRow> {
  const connector = namedConnector(ctx, input);
  const ssh_tunnel = tunnelAfter(ctx, input.ssh_tunnel, null);
  refuseUnsupported(connector, input);
  const own = await parametersOfConnector(ctx, input);
  const { all, lacks_credentials } = await checkParameters(ctx, connector, input.parameters, own);
  const row = draftRow(ctx.deps, ctx.principal, input);
  return {
    ...row,
    ...sealParameters(ctx.deps, connector, { row, all }),
    status: lacks_credentials ? 'pending_auth' : 'pending_test',
    auth_method: connector.auth_methods.find((one) => one === input.auth_method) ?? connector.auth_methods[0] ?? 'none',
    ssh_tunnel,
    datasets: input.datasets ?? [],
    credentials_expire_at: input.credentials_expire_at ?? null,
    owner: input.owner ?? null,
  };
}
