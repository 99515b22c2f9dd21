import { randomBytes } from 'node:crypto';
import { type AccountConnectorRow, oauthConsents } from '../../../../db/schema/index.ts';
import { actorOf, type Ctx, requirePermission } from '../../../api/procedure.ts';
import { consentPage } from '../../../connector-runtime/consent/call-consent.ts';
import { openParameters } from '../../../connector-runtime/connector-secrets.ts';
import type { AnyConnector } from '../../../connectors/contract/connector.ts';
import { ConnectorError } from '../../../connectors/contract/errors.ts';
import { findConnector } from '../../../connectors/registry.ts';
import { badRequest, notFound } from '../../../platform/errors.ts';
import { parametersOfConnector, refuseOtherDocuments } from '../../access/custom-connectors.ts';
import { draftRow } from '../../access/draft-row.ts';
import { overlayParameters, refuseSecretReferences, sealParameters } from '../parameters.ts';
import { findAccountConnector } from '../query.ts';
import { requireSecretsAgain } from '../secrets/redirected-secrets.ts';
import type { BeginConsentRequest, BegunConsent, OAuthConsent } from './schema.ts';
import { hashOf, isOfCaller, PENDING_MS, redirectUrl, sealConsent } from './stored.ts';

const random = () => randomBytes(32).toString('base64url');

/** Kept by the browser that begins, so that no other one can complete. */
export const CONSENT_COOKIE = 'oauth-consent';

/**
 * Begins a consent of the caller. The page is for the browser of the same person: a session of the console binds it by a
 * cookie, a key by a code that the last page shows.
 * @throws ApiError 400 `consent_unsupported`, `secrets_required` and what the connector refuses
 */
export async function beginConsent(ctx: Ctx, input: BeginConsentRequest): Promise<BegunConsent> {
  const { row, parameters } = await candidateOf(ctx, input);
  const { deps, principal } = ctx;
  const [state, code_verifier, browser] = [random(), random(), random()];
  const id = Bun.randomUUIDv7();
  const isBrowser = principal.session !== undefined;
  const request = { redirect_url: redirectUrl(deps), state, code_verifier };
  const url = await consentPage(deps, row, { request, actor: actorOf(principal) }).catch(refused);
  const expires_at = new Date(deps.now().getTime() + PENDING_MS).toISOString();
  await ctx.db.insert(oauthConsents).values({
    id,
    account_id: principal.account_id,
    user_id: principal.user_id,
    account_connector_id: input.account_connector_id ?? null,
    connector_type: row.connector_type,
    connector_name: row.connector_name,
    state_hash: hashOf(deps, 'state', state),
    browser_hash: isBrowser ? hashOf(deps, 'browser', browser) : null,
    sealed: sealConsent(deps, { account_id: principal.account_id, id }, { parameters, state, code_verifier }),
    expires_at,
  });
  if (isBrowser) ctx.setHeader('set-cookie', cookie(deps.config, browser));
  return { id, url, needs_code: !isBrowser, expires_at };
}

/** Lax, not Strict: the provider's page sends the browser back. */
const cookie = ({ PUBLIC_URL, BASE_PATH }: Ctx['deps']['config'], value: string) =>
  new Bun.Cookie(CONSENT_COOKIE, value, {
    path: `${BASE_PATH}/oauth/callback`,
    httpOnly: true,
    sameSite: 'lax',
    secure: PUBLIC_URL.startsWith('https:'),
    maxAge: PENDING_MS / 1000,
  }).toString();

function refused(error: unknown): never {
  if (error instanceof ConnectorError) throw badRequest(error.code, error.message, { field: 'parameters' });
  throw error;
}

/** New settings, or those of a stored connector with changes, which may lack what the consent provides. */
async function candidateOf(
  ctx: Ctx,
  input: BeginConsentRequest,
): Promise<{ row: AccountConnectorRow; parameters: Record<string, unknown> }> {
  const { account_connector_id: id, parameters: given } = input;
  const stored = id == null ? null : await findAccountConnector(ctx, id, false);
  const { connector_type, connector_name } = stored ?? input;
  requirePermission(ctx, `${connector_type}s.${stored ? 'update' : 'create'}`);
  const connector: AnyConnector | undefined = findConnector(connector_type as 'source', connector_name);
  if (!connector?.consent) {
    throw badRequest('consent_unsupported', `${connector_name} has no consent`, { field: 'connector_name' });
  }
  refuseSecretReferences(ctx, connector, given);
  const before = stored
    ? openParameters(ctx.deps, stored)
    : await parametersOfConnector(ctx, { connector_name, parameters: given });
  refuseOtherDocuments(connector_name, given, before);
  const parameters = overlayParameters(connector, given, before);
  requireSecretsAgain(connector, { before, after: parameters, given });
  const row = stored ?? draftRow(ctx.deps, ctx.principal, { name: 'Consent', connector_type, connector_name });
  return { row: { ...row, ...sealParameters(ctx.deps, connector, { row, all: parameters }) }, parameters };
}

/** A consent of the caller. @throws ApiError 404 */
export async function getConsent(ctx: Ctx, input: { oauth_consent_id: string }): Promise<OAuthConsent> {
  const isId = /^[0-9a-f-]{36}$/i.test(input.oauth_consent_id);
  const [row] = isId ? await ctx.db.select().from(oauthConsents).where(isOfCaller(ctx, input.oauth_consent_id)) : [];
  if (!row) throw notFound('Consent');
  const isOver =
    row.status !== 'used' && row.status !== 'failed' && Date.parse(row.expires_at) < ctx.deps.now().getTime();
  return {
    id: row.id,
    status: isOver ? 'expired' : row.status,
    error: row.error_code === null ? null : { code: row.error_code, message: row.error_message ?? '' },
    expires_at: row.expires_at,
  };
}
