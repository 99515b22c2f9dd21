import { AuthenticationError, ConfigurationError } from '../../contract/errors.ts';
import { basicSigner, bearerSigner, fixedSigner, keySigner } from '../../kits/rest/signing/authentication.ts';
import { flowSigner, type TokenContext, TokenSource } from '../../kits/rest/signing/oauth.ts';
import { Shared, sharedKey } from '../../kits/rest/rate-limiter.ts';
import type {
  Authenticator,
  HttpRequester,
  JwtAuthenticator,
  LegacySessionTokenAuthenticator,
  OAuthAuthenticator,
  RequestOption,
  SessionTokenAuthenticator,
} from '../components/request-components.ts';
import { parseExactly } from '../../cells/json-line.ts';
import { signJwt } from '../../kits/rest/signing/jwt.ts';
import { atPath, setAtPath } from '../interpolation/dpath.ts';
import { isMapping } from '../interpolation/values.ts';
import { pyText } from '../interpolation/python-literal.ts';
import { parseDuration } from '../interpolation/python-time.ts';
import type { Interpolation } from '../interpolation/template.ts';
import { formText, present } from '../requests/form.ts';
import type { HttpRequest } from '../../kits/rest/request.ts';
import type { Signer } from '../../kits/rest/signing/signer.ts';

export interface Signing extends Interpolation {
  ctx: TokenContext & { now(): Date };
  /** Sends the login request of a session, and returns its JSON. */
  login(requester: HttpRequester): Promise<unknown>;
  /** Signs by a custom component. */
  custom(component: unknown): Signer;
  /** Where the requester sends its requests, as a template. */
  base: string;
}

/** @throws ConfigurationError when the configuration lacks a credential */
export function createSigner(authenticator: Authenticator | null | undefined, signing: Signing): Signer {
  const text = (template: string) => needed(signing, template);
  switch (authenticator?.type) {
    case undefined:
    case 'NoAuth':
      return fixedSigner(() => ({}));
    case 'BearerAuthenticator':
      return bearerSigner(text(authenticator.api_token));
    case 'BasicHttpAuthenticator': {
      const password = signing.templates.text(authenticator.password, signing.scope) ?? '';
      return basicSigner(text(authenticator.username), password);
    }
    case 'ApiKeyAuthenticator': {
      const { inject_into, header, api_token } = authenticator;
      const name = inject_into ? optionName(signing, inject_into) : text(header ?? 'Authorization');
      return optionSigner(signing, inject_into, name)(text(api_token));
    }
    case 'OAuthAuthenticator':
      return oauthSigner(authenticator, signing);
    case 'SessionTokenAuthenticator':
      return sessionSigner(authenticator, signing);
    case 'LegacySessionTokenAuthenticator':
      return legacySessionSigner(authenticator, signing);
    case 'PythonAuthenticator':
      return signing.custom(authenticator.component);
    case 'JwtAuthenticator':
      return jwtSigner(authenticator, signing);
    case 'SelectiveAuthenticator': {
      const selected = atPath(signing.scope.config, authenticator.authenticator_selection_path);
      const name = selected === undefined || selected === null ? '' : pyText(selected);
      const found = Object.hasOwn(authenticator.authenticators, name) ? authenticator.authenticators[name] : undefined;
      if (found) return createSigner(found, signing);
      const place = authenticator.authenticator_selection_path.join('.');
      throw new ConfigurationError(
        'unknown_authentication',
        `config.${place} selects the authenticator "${name}", which the manifest does not have`,
      );
    }
  }
}

/** Puts a credential where a request option says: a header, the query or the body. */
function optionSigner(
  signing: Signing,
  option: RequestOption | null | undefined,
  name: string,
): (value: string) => Signer {
  const place = option?.inject_into ?? 'header';
  if (place === 'header') return (value) => keySigner('header', name, value);
  if (place === 'request_parameter') return (value) => keySigner('query', name, value);
  const path = (option?.field_path ?? [name]).map((part) => needed(signing, part));
  return (value) => ({
    current: async () => null,
    sign: (request) => ({ url: new URL(request.url), ...withField(request, { place, path, value }) }),
    renew: () => false,
  });
}

function withField(
  { headers, body }: HttpRequest,
  { place, path, value }: { place: 'body_data' | 'body_json'; path: string[]; value: string },
): { headers: Record<string, string>; body: string } {
  if (place === 'body_data') {
    const form = new URLSearchParams(body ?? '');
    form.set(path.join('.'), value);
    return { headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers }, body: form.toString() };
  }
  const found = body === null ? {} : parseExactly(body);
  if (!isMapping(found))
    throw new ConfigurationError(
      'invalid_body',
      'The body of the request is not an object, so it cannot hold the credentials',
    );
  setAtPath(found, path, value);
  return { headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(found) };
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
    return bearerSigner(needed(signing, oauth.access_token_value ?? ''));
  }
  const assertion = assertionOf(oauth, signing);
  const grant = assertion ? JWT_GRANT : needed(signing, oauth.grant_type);
  const given = grant === 'refresh_token' ? refreshTokenOf(oauth, signing) : null;
  const more = templates.nested(oauth.refresh_request_body, scope) as Record<string, unknown>;
  const headers = lowered(templates.nested(oauth.refresh_request_headers, scope) as Record<string, unknown>);
  const asJson = headers['content-type']?.includes('json') ?? false;
  const url = needed(signing, oauth.token_refresh_endpoint);
  const named = (refresh_token: string | null) => ({
    [needed(signing, oauth.grant_type_name)]: grant,
    [needed(signing, oauth.client_id_name)]: text(oauth.client_id),
    [needed(signing, oauth.client_secret_name)]: text(oauth.client_secret),
    [needed(signing, oauth.refresh_token_name)]: refresh_token,
    ...(oauth.scopes.length > 0 && { scopes: oauth.scopes.map((one) => needed(signing, one)) }),
    ...more,
  });
  const fields = (refresh_token: string | null): Record<string, unknown> =>
    assertion ? { [needed(signing, oauth.grant_type_name)]: grant, assertion: assertion() } : named(refresh_token);
  const flow = {
    key: sharedKey(url, assertion ? [oauth, scope.config] : named(given), headers),
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

const JWT_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** Creates the signed statement that a token is requested with; null: it is requested with something else. */
function assertionOf(
  { use_profile_assertion: uses, profile_assertion: jwt }: OAuthAuthenticator,
  signing: Signing,
): (() => string) | null {
  const isUsed = typeof uses === 'string' ? signing.templates.truth(uses, signing.scope) : uses === true;
  if (!isUsed) return null;
  if (!jwt) throw new ConfigurationError('missing_value', 'use_profile_assertion needs a profile_assertion');
  return jwtTokens(jwt, signing);
}

/** Rotated refresh tokens are stored at a path of their own in the configuration. */
function refreshTokenOf(
  { refresh_token, refresh_token_updater: updater }: OAuthAuthenticator,
  signing: Signing,
): string {
  const found = updater ? atPath(signing.scope.config, updater.refresh_token_config_path) : null;
  return typeof found === 'string' && found !== '' ? found : needed(signing, refresh_token ?? '');
}

const lowered = (headers: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), pyText(value)]));

const sessions = new Shared<TokenSource>();
const DEFAULT_SESSION_MICROS = 3_600_000_000;

/** The token of a login request, shared by all streams until it is refused or expires. */
function sessionSigner(authenticator: SessionTokenAuthenticator, signing: Signing): Signer {
  const { session_token_path, expiration_duration, request_authentication } = authenticator;
  const source = sessions.get(sharedKey(authenticator, signing.scope.config), () => new TokenSource());
  const lifetime = (parseDuration(expiration_duration ?? '')?.micros ?? DEFAULT_SESSION_MICROS) / 1000;
  const fetchToken = async () => {
    const found = atPath(await signing.login(authenticator.login_requester), session_token_path);
    if (typeof found !== 'string' || found === '')
      throw new AuthenticationError('no_token', `The login response has no token at ${session_token_path.join('.')}`);
    return { value: found, expires: performance.now() + lifetime };
  };
  return {
    current: () => source.get(fetchToken),
    sign(request, token) {
      if (request_authentication.type === 'Bearer') return bearerSigner(token ?? '').sign(request, token);
      const { inject_into } = request_authentication;
      return optionSigner(signing, inject_into, optionName(signing, inject_into))(token ?? '').sign(request, token);
    },
    renew: (refused) => source.forget(refused),
  };
}

/** A session of username and password, unless the configuration has a token. It is fetched again when it is refused. */
function legacySessionSigner(authenticator: LegacySessionTokenAuthenticator, signing: Signing): Signer {
  const { templates, scope } = signing;
  const { header, login_url, session_token, session_token_response_key, username, password } = authenticator;
  const text = (template: string | null | undefined) => (template ? templates.text(template, scope) : null);
  const name = needed(signing, header);
  const given = text(session_token);
  if (given !== null && text(password) === null) return keySigner('header', name, given);
  const source = sessions.get(sharedKey(authenticator, scope.config), () => new TokenSource());
  const requester: HttpRequester = {
    type: 'HttpRequester',
    url_base: signing.base,
    path: login_url,
    http_method: 'POST',
    request_body: { type: 'RequestBodyJsonObject', value: { username: username ?? '', password: password ?? '' } },
    $parameters: scope.parameters as Record<string, unknown>,
  };
  let isGiven = given !== null;
  const fetchToken = async () => {
    const expires = performance.now() + DEFAULT_SESSION_MICROS / 1000;
    if (isGiven) {
      isGiven = false;
      return { value: given ?? '', expires };
    }
    const answer = await signing.login(requester);
    const found = isMapping(answer) ? answer[needed(signing, session_token_response_key)] : null;
    if (typeof found === 'string' && found !== '') return { value: found, expires };
    throw new AuthenticationError('no_token', `The login response has no token at ${session_token_response_key}`);
  };
  return {
    current: () => source.get(fetchToken),
    sign: (request, token) => keySigner('header', name, token ?? '').sign(request, token),
    renew: (refused) => source.forget(refused),
  };
}

/** A token of our own, signed anew for each request, so that it never expires on the way. */
function jwtSigner(jwt: JwtAuthenticator, signing: Signing): Signer {
  const name = jwt.request_option ? optionName(signing, jwt.request_option) : 'Authorization';
  const put = optionSigner(signing, jwt.request_option, name);
  const create = jwtTokens(jwt, signing);
  return {
    current: async () => null,
    sign: (request) => put(create()).sign(request, null),
    renew: () => false,
  };
}

/** Creates tokens, with their prefix. */
function jwtTokens(jwt: JwtAuthenticator, signing: Signing): () => string {
  const { templates, scope, ctx } = signing;
  const rendered = (values: Record<string, unknown> | null | undefined) =>
    present((templates.nested(values ?? {}, scope) ?? {}) as Record<string, unknown>);
  const secret = needed(signing, jwt.secret_key);
  const encodes =
    typeof jwt.base64_encode_secret_key === 'string'
      ? templates.truth(jwt.base64_encode_secret_key, scope)
      : jwt.base64_encode_secret_key === true;
  const passphrase = jwt.passphrase ? (templates.text(jwt.passphrase, scope) ?? undefined) : undefined;
  const prefix = jwt.header_prefix ? templates.text(jwt.header_prefix, scope) : null;
  return () => {
    const now = Math.floor(ctx.now().getTime() / 1000);
    const token = signJwt({
      algorithm: jwt.algorithm,
      key: encodes && !passphrase ? Buffer.from(secret).toString('base64') : secret,
      passphrase,
      headers: { ...rendered(jwt.additional_jwt_headers), ...rendered(jwt.jwt_headers) },
      payload: {
        ...rendered(jwt.additional_jwt_payload),
        ...rendered(jwt.jwt_payload),
        iat: now,
        exp: now + jwt.token_duration,
        nbf: now,
      },
    });
    return prefix === null ? token : `${prefix} ${token}`;
  };
}
