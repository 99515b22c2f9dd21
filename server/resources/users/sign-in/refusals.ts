import { ApiError } from '../../../platform/errors.ts';
import { EgressError } from '../../../platform/net/egress-rules.ts';
import type { ProviderSettings } from '../../../platform/provider-settings.ts';
import { openid } from './openid.ts';

/** Errors of the authorization response by which a person, or the provider for them, declines. */
const DECLINED = ['access_denied', 'login_required', 'interaction_required', 'consent_required'];
const AWAY = ['temporarily_unavailable', 'server_error'];
const WRONG_TIME = 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED';
/** Codes of a token or response that is not the one that was asked for. */
const WRONG_TOKEN = [
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_PARSE_ERROR',
  'OAUTH_UNSUPPORTED_OPERATION',
];

export const misconfigured = (settings: ProviderSettings, reason: string) =>
  new ApiError(
    400,
    'sign_in_provider_misconfigured',
    `${settings.name} and this service do not agree: ${reason}. Check its entry in OIDC_PROVIDERS`,
    { provider: settings.id },
  );

const unreachable = ({ id, name }: ProviderSettings) =>
  new ApiError(400, 'sign_in_provider_unreachable', `${name} cannot be reached. Try again later`, { provider: id });

/** A sign-in that this service refuses: 401 for what the provider sent, 403 for whom it sent. */
export const refused = (settings: ProviderSettings, status: 401 | 403, code: string, message: string) =>
  new ApiError(status, code, message, { provider: settings.id });

/** The error of a provider's client in the words of this service. */
export function refusalOf(error: unknown, settings: ProviderSettings): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof openid().AuthorizationResponseError) {
    if (AWAY.includes(error.error)) return unreachable(settings);
    if (!DECLINED.includes(error.error)) return misconfigured(settings, error.error);
    return refused(settings, 403, 'sign_in_denied', `${settings.name} did not sign you in: ${error.error}`);
  }
  if (error instanceof openid().ResponseBodyError) {
    if (error.error !== 'invalid_grant') return misconfigured(settings, error.error);
    return refused(settings, 401, 'sign_in_code_refused', 'The provider refused the code: it was used or has expired');
  }
  const { code } = error as { code?: string };
  if (code === WRONG_TIME) {
    const message = 'The token of the provider has expired, or the clocks of provider and service differ';
    return refused(settings, 401, 'sign_in_token_expired', message);
  }
  if (code && WRONG_TOKEN.includes(code)) {
    return refused(settings, 401, 'sign_in_token_invalid', `The token of the provider is not for this sign-in`);
  }
  if (code === 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED') return misconfigured(settings, 'it has another issuer');
  if (code === 'OAUTH_HTTP_REQUEST_FORBIDDEN') return misconfigured(settings, 'it sends requests to plain http');
  const blocked = causesOf(error).find((one) => one instanceof EgressError && one.code !== 'host_not_found');
  return blocked ? misconfigured(settings, (blocked as Error).message) : unreachable(settings);
}

function causesOf(error: unknown): unknown[] {
  const causes: unknown[] = [];
  for (let one = error; one instanceof Error && causes.length < 10; one = one.cause) causes.push(one);
  return causes;
}
