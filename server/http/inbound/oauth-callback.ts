import { recordCall } from '../../api/audit/record.ts';
import type { Deps } from '../../deps.ts';
import { CONSENT_COOKIE } from '../../resources/account-connectors/consents/begin.ts';
import { completeConsent, type ConsentOutcome } from '../../resources/account-connectors/consents/complete.ts';
import { recordRefusal } from '../../api/audit/refusals.ts';
import { ApiError } from '../../platform/errors.ts';
import type { Handler } from '../edge.ts';
import { unauthenticatedCall } from '../errors.ts';
import { cookieIn } from '../session.ts';
import type { HttpExchange } from '../exchange.ts';

const ROUTE = '/oauth/callback';
const MAX_LENGTH = 4000;

/** GET: a provider sends the browser back here after a consent. The last page; it leads nowhere else. */
export const oauthCallback =
  (deps: Deps): Handler =>
  async (exchange) => {
    const { searchParams } = new URL(exchange.request.url);
    const given = (name: string) => searchParams.get(name)?.slice(0, MAX_LENGTH) ?? null;
    const browser = cookieIn(exchange.request, CONSENT_COOKIE)?.slice(0, MAX_LENGTH) ?? null;
    const call = unauthenticatedCall(exchange, ROUTE);
    try {
      const answer = { state: given('state') ?? '', code: given('code'), error: given('error'), browser };
      const outcome = await completeConsent(deps, answer);
      await recordCall(deps.db, { ...call, about: aboutOf(outcome) }, entryOf(outcome));
      return outcome.error === null ? completedPage(outcome.code) : failedPage(exchange, outcome.error);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      await recordRefusal(deps, error, () => call);
      return failedPage(exchange, error);
    }
  };

const aboutOf = ({ consent }: ConsentOutcome) => ({
  account_id: consent.account_id,
  resource_type: 'oauth_consent',
  resource_id: consent.id,
  resource_name: consent.connector_name,
});

const entryOf = ({ error }: ConsentOutcome) =>
  error === null ? { kind: 'call' as const } : { kind: 'call' as const, outcome: 'refused' as const, code: error.code };

const completedPage = (code: string | null) =>
  page(
    200,
    'Connected',
    code === null
      ? ['The tokens are stored. Close this page and save the settings.']
      : ['Enter this code where you began. Enter it nowhere else.', code],
  );

const failedPage = ({ request_id }: HttpExchange, { code, message }: { code: string; message: string }) =>
  page(400, 'Not connected', [message, `${code}, request ${request_id}`]);

function page(status: number, title: string, lines: readonly string[]): Response {
  const text = lines.map((line) => `<p>${Bun.escapeHTML(line)}</p>`).join('');
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1>${text}</html>`;
  return new Response(html, { status, headers: { 'content-type': 'text/html; charset=utf-8' } });
}
