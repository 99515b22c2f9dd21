import type { Consent } from '../contract/connector.ts';
import { AuthenticationError, ConfigurationError } from '../contract/errors.ts';
import { basicHeader } from '../kits/rest/signing/oauth.ts';
import { consentPage, exchangeCode, unsupportedConsent } from '../kits/rest/signing/consent.ts';
import { requireText } from '../kits/rest/template.ts';
import { parseDefinition } from './parse-definition.ts';

/** The refresh token comes from the provider, by the authorization code grant. */
export const httpApiConsent: Consent = {
  page(parameters, request) {
    const { oauth, scope } = consentOf(parameters);
    const url = URL.parse(requireText(oauth.authorization_url, scope));
    if (!url) throw new ConfigurationError('invalid_address', 'authorization_url is not a URL');
    const values = {
      response_type: 'code',
      client_id: requireText(oauth.client_id, scope),
      redirect_uri: request.redirect_url,
      ...(oauth.scope !== undefined && { scope: requireText(oauth.scope, scope) }),
      ...Object.fromEntries(
        Object.entries(oauth.authorization_parameters).map(([name, value]) => [name, requireText(value, scope)]),
      ),
    };
    for (const [name, value] of Object.entries(values)) url.searchParams.set(name, value);
    return consentPage(url.href, request).url;
  },
  async complete(ctx, parameters, { code, code_verifier, redirect_url }) {
    const { oauth, scope, token_name } = consentOf(parameters);
    const client_id = requireText(oauth.client_id, scope);
    const client_secret = requireText(oauth.client_secret, scope);
    const inHeader = oauth.credentials_in === 'basic_header';
    const response = await exchangeCode(ctx, {
      url: requireText(oauth.token_url, scope),
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        ...(inHeader && { authorization: basicHeader(client_id, client_secret) }),
      },
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        code,
        redirect_uri: redirect_url,
        code_verifier,
        ...(!inHeader && { client_id, client_secret }),
      }).toString(),
    });
    const { refresh_token } = response;
    if (typeof refresh_token !== 'string' || refresh_token === '') {
      const advice = 'Let authorization_parameters or the scope ask for offline access';
      throw new AuthenticationError('no_token', `The provider returned no refresh token. ${advice}`);
    }
    return { secrets: { ...scope.secrets, [token_name]: refresh_token } };
  },
};

/** A refresh token has to be one secret, so that it can be stored there. */
const TOKEN_REFERENCE = /^\{\{\s*secrets\.(\w+)\s*\}\}$/;

function consentOf({ definition: text, config, secrets }: Record<string, unknown>) {
  const { definition, problem } = parseDefinition(typeof text === 'string' ? text : '');
  if (!definition) throw new ConfigurationError('invalid_definition', problem);
  const oauth = definition.authentication;
  if (oauth.type !== 'oauth2_refresh_token' || oauth.authorization_url === undefined) {
    throw unsupportedConsent('Consent needs the authentication oauth2_refresh_token with an authorization_url');
  }
  const token_name = TOKEN_REFERENCE.exec(oauth.refresh_token)?.[1];
  if (token_name === undefined) {
    throw unsupportedConsent(
      'Consent needs a refresh_token that is a secret value, such as {{ secrets.refresh_token }}',
    );
  }
  const scope = { config: objectOf(config), secrets: objectOf(secrets) };
  return { oauth: { ...oauth, authorization_url: oauth.authorization_url }, scope, token_name };
}

const objectOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
