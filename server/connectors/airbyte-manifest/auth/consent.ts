import { z } from 'zod';
import type { Consent, ConsentAnswer, ConsentRequest } from '../../contract/connector.ts';
import { AuthenticationError, ConfigurationError } from '../../contract/errors.ts';
import { consentPage, exchangeCode, unsupportedConsent } from '../../kits/rest/signing/consent.ts';
import { parseManifest } from '../components/parse-manifest.ts';
import { atPath, setAtPath } from '../interpolation/dpath.ts';
import { Templates } from '../interpolation/template.ts';
import { type Config, merged } from '../spec/specification.ts';

const path = z.array(z.string().min(1)).min(1);
const places = z
  .object({
    properties: z
      .record(
        z.string(),
        z.looseObject({ path_in_connector_config: path.optional(), path_in_oauth_response: path.optional() }),
      )
      .default({}),
  })
  .default({ properties: {} });

/** `spec.advanced_auth` of a manifest: where users consent, and where the tokens belong. */
const AdvancedAuth = z.looseObject({
  predicate_key: path.optional(),
  predicate_value: z.string().optional(),
  oauth_config_specification: z.looseObject({
    oauth_connector_input_specification: z.looseObject({
      consent_url: z.string(),
      access_token_url: z.string(),
      scope: z.string().optional(),
      scopes: z.array(z.looseObject({ scope: z.string() })).optional(),
      optional_scopes: z.array(z.looseObject({ scope: z.string() })).optional(),
      scopes_join_strategy: z.enum(['space', 'plus', 'comma']).default('space'),
      access_token_headers: z.record(z.string(), z.unknown()).default({}),
      access_token_params: z.record(z.string(), z.unknown()).default({}),
      extract_output: z.array(z.string()).default(['access_token', 'refresh_token']),
      client_id_key: z.string().default('client_id'),
      client_secret_key: z.string().default('client_secret'),
      scope_key: z.string().default('scope'),
      state_key: z.string().default('state'),
      auth_code_key: z.string().default('code'),
      redirect_uri_key: z.string().default('redirect_uri'),
    }),
    complete_oauth_output_specification: places,
    complete_oauth_server_output_specification: places,
  }),
});
type Specification = z.infer<typeof AdvancedAuth>;
type Input = Specification['oauth_config_specification']['oauth_connector_input_specification'];

interface Opened {
  specification: Specification;
  input: Input;
  config: Config;
  /** Parameters without and with secrets, as the user entered them. */
  plain: Config;
  secrets: Config;
}

export const manifestConsent: Consent = {
  page: (parameters, request) => {
    const opened = open(parameters);
    return pageOf(opened, request).url;
  },
  async complete(ctx, parameters, answer) {
    const opened = open(parameters);
    const { isOwnChallenge } = pageOf(opened, answer);
    const response = await exchangeCode(ctx, tokenRequest(opened, answer, isOwnChallenge));
    return settingsWith(opened, response);
  },
};

function open({ manifest: text, config, secrets }: Record<string, unknown>): Opened {
  const { manifest, problem } = parseManifest(typeof text === 'string' ? text : '');
  if (!manifest) throw new ConfigurationError('invalid_manifest', problem);
  const parsed = AdvancedAuth.safeParse(manifest.advanced_auth);
  if (!parsed.success) {
    throw unsupportedConsent(
      'Consent needs spec.advanced_auth with an oauth_connector_input_specification in the manifest',
    );
  }
  const [plain, hidden] = [objectOf(config), objectOf(secrets)];
  return {
    specification: parsed.data,
    input: parsed.data.oauth_config_specification.oauth_connector_input_specification,
    config: merged(plain, hidden) as Config,
    plain,
    secrets: hidden,
  };
}

const objectOf = (value: unknown): Config =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? structuredClone(value as Config) : {};

const pageOf = (opened: Opened, request: ConsentRequest) =>
  consentPage(rendered(opened.input.consent_url, scopeOf(opened, request)), request, opened.input.state_key);

const templates = new Templates(() => new Date());

function rendered(template: string, scope: Record<string, unknown>): string {
  const text = templates.text(template, scope);
  if (text !== null) return text;
  throw new ConfigurationError('missing_value', `The manifest has no value for ${template.slice(0, 200)}`);
}

/** The names of the variables are those of Airbyte: the key, the value and both together as a parameter of a URL. */
function scopeOf(opened: Opened, request: ConsentRequest & { code?: string }): Record<string, unknown> {
  const { input, config, specification } = opened;
  const { properties } = specification.oauth_config_specification.complete_oauth_server_output_specification;
  const ofClient = (name: string) => {
    const found = atPath(config, properties[name]?.path_in_connector_config ?? [name]);
    if (typeof found === 'string' && found !== '') return found;
    throw new ConfigurationError('missing_value', `Enter a value for ${name} before you connect`);
  };
  const values = {
    client_id: [input.client_id_key, ofClient(input.client_id_key)],
    client_secret: [input.client_secret_key, ofClient(input.client_secret_key)],
    redirect_uri: [input.redirect_uri_key, request.redirect_url],
    scope: [input.scope_key, scopesOf(opened)],
    state: [input.state_key, request.state],
    auth_code: [input.auth_code_key, request.code ?? ''],
  } satisfies Record<string, [string, string]>;
  const variables = Object.entries(values).flatMap(([name, [key, value]]) => [
    [`${name}_key`, key],
    [`${name}_value`, value],
    [`${name}_param`, `${encodeURIComponent(key)}=${encodeURIComponent(value)}`],
  ]);
  const short = { state: request.state, redirect_uri: request.redirect_url };
  return { config, parameters: {}, ...short, ...Object.fromEntries(variables) };
}

const JOINTS = { space: ' ', plus: '+', comma: ',' };

function scopesOf({ input, config }: Opened): string {
  const { scope, scopes = [], optional_scopes = [], scopes_join_strategy } = input;
  if (scope !== undefined) return templates.text(scope, { config, parameters: {} }) ?? '';
  return [...scopes, ...optional_scopes].map((one) => one.scope).join(JOINTS[scopes_join_strategy]);
}

function tokenRequest(opened: Opened, answer: ConsentAnswer, isOwnChallenge: boolean) {
  const { input } = opened;
  const scope = scopeOf(opened, answer);
  const given = templates.nested(input.access_token_params, scope) as Record<string, unknown>;
  const usual = {
    grant_type: 'authorization_code',
    [input.auth_code_key]: answer.code,
    [input.client_id_key]: scope.client_id_value,
    [input.client_secret_key]: scope.client_secret_value,
    [input.redirect_uri_key]: answer.redirect_url,
  };
  const fields: Record<string, unknown> = {
    ...(Object.keys(given).length > 0 ? given : usual),
    ...(!isOwnChallenge && { code_verifier: answer.code_verifier }),
  };
  const nested = templates.nested(input.access_token_headers, scope) as Record<string, unknown>;
  const headers = Object.fromEntries(
    Object.entries(nested).map(([name, value]) => [name.toLowerCase(), String(value)]),
  );
  const type = headers['content-type'] ?? 'application/x-www-form-urlencoded';
  const texts = Object.entries(fields).map(([name, value]): [string, string] => [name, String(value)]);
  return {
    url: rendered(input.access_token_url, scope),
    headers: { ...headers, 'content-type': type },
    body: type.includes('json') ? JSON.stringify(fields) : new URLSearchParams(texts).toString(),
  };
}

/** Tokens are secrets wherever the manifest puts them. */
function settingsWith({ specification, input, plain, secrets }: Opened, response: Record<string, unknown>) {
  const { properties } = specification.oauth_config_specification.complete_oauth_output_specification;
  const names = Object.keys(properties).length > 0 ? Object.keys(properties) : input.extract_output;
  let found = 0;
  for (const name of names) {
    const value = atPath(response, properties[name]?.path_in_oauth_response ?? [name]);
    if (value === undefined || value === null || value === '') continue;
    setAtPath(secrets, properties[name]?.path_in_connector_config ?? [name], value);
    found += 1;
  }
  if (found === 0) throw new AuthenticationError('no_token', `The provider returned none of ${names.join(', ')}`);
  const { predicate_key, predicate_value } = specification;
  if (predicate_key === undefined || predicate_value === undefined) return { secrets };
  setAtPath(plain, predicate_key, predicate_value);
  return { secrets, config: plain };
}
