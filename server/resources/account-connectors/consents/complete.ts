import { and, eq, gt, inArray, isNull, or } from 'drizzle-orm';
import { accountConnectors, type OAuthConsentRow, oauthConsents } from '../../../../db/schema/index.ts';
import { consentTokens } from '../../../connector-runtime/consent/call-consent.ts';
import { ConnectorError } from '../../../connectors/contract/errors.ts';
import { findConnector } from '../../../connectors/registry.ts';
import type { Deps } from '../../../deps.ts';
import { ApiError } from '../../../platform/errors.ts';
import { draftRow } from '../../access/draft-row.ts';
import { sealParameters } from '../parameters.ts';
import { COMPLETED_MS, hashesOf, hashOf, newCode, openConsent, redirectUrl, sealConsent } from './stored.ts';

/** The query of the provider's answer, and the cookie of the browser. */
export interface ProviderAnswer {
  state: string;
  code: string | null;
  error: string | null;
  browser: string | null;
}

export type ConsentOutcome = { consent: OAuthConsentRow } & (
  | { code: string | null; error: null }
  | { code: null; error: { code: string; message: string } }
);

/**
 * Exchanges the code of the provider's answer. The state works once, for the browser that began.
 * @throws ApiError 401 `consent_not_started`
 */
export async function completeConsent(deps: Deps, answer: ProviderAnswer): Promise<ConsentOutcome> {
  const consent = await claim(deps, answer);
  if (answer.code === null) {
    const message = answer.error === 'access_denied' ? 'Consent was declined' : 'The provider returned an error';
    return fail(deps, consent, { code: 'consent_denied', message: `${message}. Connect again` });
  }
  try {
    return await exchange(deps, consent, answer.code);
  } catch (error) {
    if (!(error instanceof ConnectorError) && !(error instanceof ApiError)) throw error;
    return fail(deps, consent, { code: error.code, message: error.message });
  }
}

async function claim(deps: Deps, { state, browser }: ProviderAnswer): Promise<OAuthConsentRow> {
  const ofBrowser =
    browser === null ? undefined : inArray(oauthConsents.browser_hash, hashesOf(deps, 'browser', browser));
  const [consent] = await deps.db
    .update(oauthConsents)
    .set({ status: 'exchanging' })
    .where(
      and(
        inArray(oauthConsents.state_hash, hashesOf(deps, 'state', state)),
        eq(oauthConsents.status, 'pending'),
        gt(oauthConsents.expires_at, deps.now().toISOString()),
        or(isNull(oauthConsents.browser_hash), ofBrowser),
      ),
    )
    .returning();
  if (consent) return consent;
  throw new ApiError(
    401,
    'consent_not_started',
    'This browser did not begin this consent, or it was completed already, or took over 10 minutes. Connect again',
  );
}

async function exchange(deps: Deps, consent: OAuthConsentRow, code: string): Promise<ConsentOutcome> {
  const content = openConsent(deps, consent);
  const { state, code_verifier } = content;
  const row = await rowOf(deps, consent, content.parameters);
  const answer = { redirect_url: redirectUrl(deps), state, code_verifier, code };
  const actor = { type: 'user' as const, id: consent.user_id };
  const changed = await consentTokens(deps, row, { answer, actor });
  const shown = consent.browser_hash === null ? newCode() : null;
  const [completed] = await deps.db
    .update(oauthConsents)
    .set({
      status: 'completed',
      sealed: sealConsent(deps, consent, { ...content, changed }),
      code_hash: shown === null ? null : hashOf(deps, 'code', shown),
      expires_at: new Date(deps.now().getTime() + COMPLETED_MS).toISOString(),
    })
    .where(eq(oauthConsents.id, consent.id))
    .returning();
  return { consent: completed ?? consent, code: shown, error: null };
}

/** The settings that the consent began with. The uses of a stored connector's secrets are recorded under its id. */
async function rowOf(deps: Deps, consent: OAuthConsentRow, parameters: Record<string, unknown>) {
  const { account_id, account_connector_id, connector_type, connector_name } = consent;
  const connector = findConnector(connector_type as 'source', connector_name);
  if (!connector) throw new ConnectorError('unknown_connector', `Unknown connector ${connector_name}`);
  const [stored] =
    account_connector_id === null
      ? []
      : await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, account_connector_id));
  const identity = { account_id, user_id: consent.user_id };
  const row = stored ?? draftRow(deps, identity, { name: 'Consent', connector_type, connector_name });
  return { ...row, ...sealParameters(deps, connector, { row, all: parameters }) };
}

async function fail(
  deps: Deps,
  consent: OAuthConsentRow,
  error: { code: string; message: string },
): Promise<ConsentOutcome> {
  await deps.db
    .update(oauthConsents)
    .set({ status: 'failed', error_code: error.code, error_message: error.message })
    .where(eq(oauthConsents.id, consent.id));
  return { consent, code: null, error };
}
