import { AuthenticationError, ConfigurationError } from '../../contract/errors.ts';
import { fixed, type Signer } from '../../kits/rest/authentication.ts';
import { basicHeader, flowSigner, type TokenContext, TokenSource } from '../../kits/rest/oauth.ts';
import { Shared, sharedKey } from '../../kits/rest/rate-limiter.ts';
import type {
  Authenticator,
  OAuthAuthenticator,
  RequestOption,
  SessionTokenAuthenticator,
} from '../components/request-components.ts';
import { atPath } from '../extractors/paths.ts';
import { pyText } from '../interpolation/python-literal.ts';
import { parseSpan } from '../interpolation/python-time.ts';
import type { Scope, Templates } from '../interpolation/template.ts';

export interface Signing {
  ctx: TokenContext;
  templates: Templates;
  scope: Scope;
  /** Sends the login of a session; answers with its JSON. */
  login(authenticator: SessionTokenAuthenticator): Promise<unknown>;
}

/** @throws ConfigurationError when the configuration lacks what the way of signing needs */
export function createSigner(authenticator: Authenticator | null | undefined, signing: Signing): Signer {
  const text = (template: string) => needed(signing, template);
  switch (authenticator?.type) {
    case undefined:
    case 'NoAuth':
      return fixed(() => ({}));
    case 'BearerAuthenticator': {
      const authorization = `Bearer ${text(authenticator.api_token)}`;
      return fixed(() => ({ authorization }));
    }
    case 'BasicHttpAuthenticator': {
      const password = signing.templates.text(authenticator.password, signing.scope) ?? '';
      const authorization = basicHeader(text(authenticator.username), password);
      return fixed(() => ({ authorization }));
    }
    case 'ApiKeyAuthenticator': {
      const { inject_into, header, api_token } = authenticator;
      const name = inject_into ? optionName(signing, inject_into) : text(header ?? 'Authorization');
      return keySigner(name, text(api_token), inject_into);
    }
    case 'OAuthAuthenticator':
      return oauthSigner(authenticator, signing);
    case 'SessionTokenAuthenticator':
      return sessionSigner(authenticator, signing);
    case 'SelectiveAuthenticator': {
      const chosen = atPath(signing.scope.config, authenticator.authenticator_selection_path);
      const name = chosen === undefined || chosen === null ? '' : pyText(chosen);
      const found = Object.hasOwn(authenticator.authenticators, name) ? authenticator.authenticators[name] : undefined;
      if (found) return createSigner(found, signing);
      const place = authenticator.authenticator_selection_path.join('.');
      throw new ConfigurationError(
        'unknown_authentication',
        `The manifest knows no authentication "${name}", which config.${place} asks for`,
      );
    }
  }
}

function keySigner(name: string, value: string, option: RequestOption | { inject_into: string } | undefined): Signer {
  if (option?.inject_into !== 'request_parameter') return fixed(() => ({ [name.toLowerCase()]: value }));
  return fixed((url) => {
    url.searchParams.set(name, value);
    return {};
  });
}

const optionName = (signing: Signing, { field_name, field_path }: Pick<RequestOption, 'field_name' | 'field_path'>) =>
  needed(signing, field_name ?? field_path?.[0] ?? 'Authorization');

function needed({ templates, scope }: Signing, template: string): string {
  const text = templates.text(template, scope);
  if (text !== null) return text;
  throw new ConfigurationError('missing_value', `The configuration has no value for ${template.slice(0, 200)}`);
}

function oauthSigner(oauth: OAuthAuthenticator, signing: Signing): Signer {
  const { templates, scope, ctx } = signing;
  const text = (template: string | undefined) => (template === undefined ? null : templates.text(template, scope));
  if (oauth.token_refresh_endpoint === undefined) {
    const authorization = `Bearer ${needed(signing, oauth.access_token_value ?? '')}`;
    return fixed(() => ({ authorization }));
  }
  const grant = needed(signing, oauth.grant_type);
  const given = grant === 'refresh_token' ? refreshTokenOf(oauth, signing) : null;
  const more = templates.nested(oauth.refresh_request_body, scope) as Record<string, unknown>;
  const headers = lowered(templates.nested(oauth.refresh_request_headers, scope) as Record<string, unknown>);
  const asJson = headers['content-type']?.includes('json') ?? false;
  const url = needed(signing, oauth.token_refresh_endpoint);
  const fields = (refresh_token: string | null) => ({
    [needed(signing, oauth.grant_type_name)]: grant,
    [needed(signing, oauth.client_id_name)]: text(oauth.client_id),
    [needed(signing, oauth.client_secret_name)]: text(oauth.client_secret),
    [needed(signing, oauth.refresh_token_name)]: refresh_token,
    ...(oauth.scopes.length > 0 && { scopes: oauth.scopes.map((one) => needed(signing, one)) }),
    ...more,
  });
  const flow = {
    key: sharedKey(url, fields(given), headers),
    url,
    refresh_token: given,
    request: (refresh_token: string | null) => ({
      headers: { ...headers, 'content-type': headers['content-type'] ?? 'application/x-www-form-urlencoded' },
      body: asJson ? JSON.stringify(present(fields(refresh_token))) : formText(fields(refresh_token)),
    }),
    names: {
      access_token: needed(signing, oauth.access_token_name),
      expires_in: needed(signing, oauth.expires_in_name),
      refresh_token: oauth.refresh_token_updater?.refresh_token_name ?? needed(signing, oauth.refresh_token_name),
    },
    sign: (token: string) => ({ authorization: `Bearer ${token}` }),
  };
  return flowSigner(ctx, flow);
}

/** Tokens that are replaced have a place of their own in the configuration. */
function refreshTokenOf(
  { refresh_token, refresh_token_updater: updater }: OAuthAuthenticator,
  signing: Signing,
): string {
  const found = updater ? atPath(signing.scope.config, updater.refresh_token_config_path) : null;
  return typeof found === 'string' && found !== '' ? found : needed(signing, refresh_token ?? '');
}

const present = (fields: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));

const lowered = (headers: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), pyText(value)]));

/** The fields as a form; lists repeat their name, nothing is left out. */
export function formText(fields: Record<string, unknown>): string {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(present(fields)))
    for (const one of [value].flat()) form.append(name, pyText(one));
  return form.toString();
}

const sessions = new Shared<TokenSource>();
const SESSION_MICROS = 3_600_000_000;

/** A token that a login gives, fetched once for all streams, again when it is refused or has had its time. */
function sessionSigner(authenticator: SessionTokenAuthenticator, signing: Signing): Signer {
  const { session_token_path, expiration_duration, request_authentication } = authenticator;
  const source = sessions.get(sharedKey(authenticator, signing.scope.config), () => new TokenSource());
  const life = (parseSpan(expiration_duration ?? '')?.micros ?? SESSION_MICROS) / 1000;
  const fetchToken = async () => {
    const found = atPath(await signing.login(authenticator), session_token_path);
    if (typeof found !== 'string' || found === '')
      throw new AuthenticationError('no_token', `The login gives no token at ${session_token_path.join('.')}`);
    return { value: found, expires: performance.now() + life };
  };
  return {
    current: () => source.get(fetchToken),
    sign(call, token) {
      if (request_authentication.type === 'Bearer')
        return { url: call.url, headers: { ...call.headers, authorization: `Bearer ${token}` } };
      const name = optionName(signing, request_authentication.inject_into);
      return keySigner(name, token ?? '', request_authentication.inject_into).sign(call, token);
    },
    renew(refused) {
      if (refused !== null) source.forget(refused);
      return true;
    },
  };
}
