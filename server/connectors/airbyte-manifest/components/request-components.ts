import { z } from 'zod';
import { JWT_ALGORITHMS } from '../../kits/rest/signing/jwt.ts';
import { templateProblems } from '../interpolation/template.ts';

/** A text that may contain templates. */
export const template = z.string().superRefine((text, ctx) => {
  for (const problem of templateProblems(text))
    ctx.addIssue({ code: 'custom', message: `in its template: ${problem}` });
});
/** A value whose texts may contain templates. */
const templates = z.unknown().superRefine((value, ctx) => {
  const problems = (part: unknown): string[] => {
    if (typeof part === 'string') return templateProblems(part);
    return typeof part === 'object' && part !== null ? Object.entries(part).flat().flatMap(problems) : [];
  };
  for (const problem of new Set(problems(value)))
    ctx.addIssue({ code: 'custom', message: `in its template: ${problem}` });
});
const entry = templates.refine((value) => (value as { type?: unknown } | null)?.type !== 'QueryProperties', {
  error: 'query_properties is not supported',
});
const entries = z.union([z.record(z.string(), entry), template]).optional();
const numeric = z.union([z.number(), template]);
const path = z.array(z.union([z.string(), z.number()]).pipe(z.coerce.string()));

/** A custom component that the sandbox runs, with everything in it as the manifest has it. */
export const pythonComponent = <Type extends string>(type: Type) =>
  z.object({ type: z.literal(type), component: z.record(z.string(), z.unknown()) });

/** A `$parameters` of this name, which older manifests have for their extractors, is not a path of the request. */
const requestPath = z.preprocess(
  (given) => (typeof given === 'string' ? undefined : given),
  z.array(template).optional(),
);
export const RequestOption = z.object({
  type: z.literal('RequestOption').default('RequestOption'),
  inject_into: z.enum(['request_parameter', 'header', 'body_data', 'body_json']),
  field_name: template.optional(),
  field_path: requestPath.optional(),
});
export type RequestOption = z.infer<typeof RequestOption>;

const NoAuth = z.object({ type: z.literal('NoAuth') });
const Bearer = z.object({ type: z.literal('BearerAuthenticator'), api_token: template });
const Basic = z.object({
  type: z.literal('BasicHttpAuthenticator'),
  username: template,
  password: template.default(''),
});
const ApiKey = z.object({
  type: z.literal('ApiKeyAuthenticator'),
  api_token: template,
  header: template.optional(),
  inject_into: RequestOption.optional(),
});
const OAuth = z.object({
  type: z.literal('OAuthAuthenticator'),
  token_refresh_endpoint: template.optional(),
  client_id: template.optional(),
  client_secret: template.optional(),
  client_id_name: template.default('client_id'),
  client_secret_name: template.default('client_secret'),
  refresh_token: template.optional(),
  refresh_token_name: template.default('refresh_token'),
  grant_type: template.default('refresh_token'),
  grant_type_name: template.default('grant_type'),
  access_token_name: template.default('access_token'),
  access_token_value: template.optional(),
  expires_in_name: template.default('expires_in'),
  token_expiry_date: template.optional(),
  token_expiry_date_format: z.string().optional(),
  scopes: z.array(template).default([]),
  refresh_request_body: z.record(z.string(), templates).default({}),
  refresh_request_headers: z.record(z.string(), templates).default({}),
  use_profile_assertion: z.union([z.boolean(), template]).optional(),
  get profile_assertion() {
    return Jwt.nullish();
  },
  refresh_token_updater: z
    .object({
      refresh_token_name: z.string().default('refresh_token'),
      refresh_token_config_path: path.default(['credentials', 'refresh_token']),
    })
    .nullish(),
});
const SessionToken = z.object({
  type: z.literal('SessionTokenAuthenticator'),
  get login_requester(): z.ZodType<HttpRequester> {
    return PlainRequester;
  },
  session_token_path: path,
  decoder: z.object({ type: z.literal('JsonDecoder') }).nullish(),
  expiration_duration: z.string().optional(),
  request_authentication: z.discriminatedUnion('type', [
    z.object({ type: z.literal('ApiKey'), inject_into: RequestOption }),
    z.object({ type: z.literal('Bearer') }),
  ]),
});
/** A login with username and password, at an address below that of the requester. */
const LegacySessionToken = z.object({
  type: z.literal('LegacySessionTokenAuthenticator'),
  header: template,
  login_url: template,
  session_token: template.nullish(),
  session_token_response_key: template,
  username: template.nullish(),
  password: template.nullish(),
  validate_session_url: template,
});
const Jwt = z.object({
  type: z.literal('JwtAuthenticator'),
  secret_key: template,
  base64_encode_secret_key: z.union([z.boolean(), template]).nullish(),
  algorithm: z.enum(JWT_ALGORITHMS),
  token_duration: z.number().default(1200),
  header_prefix: template.nullish(),
  jwt_headers: z.object({ kid: template.nullish(), typ: template.nullish(), cty: template.nullish() }).nullish(),
  additional_jwt_headers: z.record(z.string(), templates).nullish(),
  jwt_payload: z.object({ iss: template.nullish(), sub: template.nullish(), aud: template.nullish() }).nullish(),
  additional_jwt_payload: z.record(z.string(), templates).nullish(),
  passphrase: template.nullish(),
  request_option: RequestOption.nullish(),
});
export type JwtAuthenticator = z.infer<typeof Jwt>;
const SIMPLE = [NoAuth, Bearer, Basic, ApiKey, OAuth, Jwt, pythonComponent('PythonAuthenticator')] as const;
const Selected = z.discriminatedUnion('type', [...SIMPLE, SessionToken, LegacySessionToken]);
const Selective = z.object({
  type: z.literal('SelectiveAuthenticator'),
  authenticator_selection_path: path,
  authenticators: z.record(z.string(), Selected),
});
export const Authenticator = z.discriminatedUnion('type', [...SIMPLE, SessionToken, LegacySessionToken, Selective]);
export type Authenticator = z.infer<typeof Authenticator>;
export type OAuthAuthenticator = z.infer<typeof OAuth>;
export type LegacySessionTokenAuthenticator = z.infer<typeof LegacySessionToken>;
export type SessionTokenAuthenticator = z.infer<typeof SessionToken>;

const Backoff = z.discriminatedUnion('type', [
  pythonComponent('PythonBackoff'),
  z.object({ type: z.literal('ConstantBackoffStrategy'), backoff_time_in_seconds: numeric }),
  z.object({ type: z.literal('ExponentialBackoffStrategy'), factor: numeric.default(5) }),
  z.object({
    type: z.literal('WaitTimeFromHeader'),
    header: template,
    regex: z.string().optional(),
    max_waiting_time_in_seconds: numeric.optional(),
  }),
  z.object({
    type: z.literal('WaitUntilTimeFromHeader'),
    header: template,
    regex: z.string().optional(),
    min_wait: numeric.optional(),
  }),
]);
export type Backoff = z.infer<typeof Backoff>;

export const ACTIONS = [
  'SUCCESS',
  'FAIL',
  'RETRY',
  'IGNORE',
  'RATE_LIMITED',
  'REFRESH_TOKEN_THEN_RETRY',
  'RESET_PAGINATION',
] as const;
export const ResponseFilter = z.object({
  type: z.literal('HttpResponseFilter'),
  action: z.enum(ACTIONS).optional(),
  failure_type: z.enum(['system_error', 'config_error', 'transient_error']).optional(),
  http_codes: z.array(z.number()).default([]),
  predicate: template.optional(),
  error_message_contains: z.string().optional(),
  error_message: template.optional(),
});
export type ResponseFilter = z.infer<typeof ResponseFilter>;
const DefaultHandler = z.object({
  type: z.literal('DefaultErrorHandler'),
  python: z.record(z.string(), z.unknown()).optional(),
  response_filters: z.array(ResponseFilter).default([]),
  max_retries: numeric.nullish(),
  backoff_strategies: z.array(Backoff).default([]),
});
export type DefaultHandler = z.infer<typeof DefaultHandler>;
interface CompositeHandler {
  type: 'CompositeErrorHandler';
  error_handlers: ErrorHandler[];
}
export type ErrorHandler = DefaultHandler | CompositeHandler;
const CompositeHandler: z.ZodType<CompositeHandler> & z.ZodObject = z.object({
  type: z.literal('CompositeErrorHandler'),
  get error_handlers(): z.ZodType<ErrorHandler[]> {
    return z.array(ErrorHandler);
  },
}) as never;
const ErrorHandler = z.discriminatedUnion('type', [DefaultHandler, CompositeHandler]) as z.ZodType<ErrorHandler>;

const FLAT = [
  z.object({ type: z.literal('JsonDecoder') }),
  z.object({ type: z.literal('JsonlDecoder') }),
  z.object({ type: z.literal('IterableDecoder') }),
  z.object({ type: z.literal('XmlDecoder') }),
  z.object({
    type: z.literal('CsvDecoder'),
    encoding: z
      .string()
      .regex(/^utf-?8(-sig)?$/i, { error: 'an encoding other than UTF-8 is not supported' })
      .default('utf-8'),
    delimiter: z.string().min(1).default(','),
    set_values_to_none: z.array(z.string()).nullish(),
  }),
] as const;
export type Decoder = z.infer<(typeof FLAT)[number]> | { type: 'GzipDecoder' | 'ZipfileDecoder'; decoder: Decoder };
export const Decoder = z.discriminatedUnion('type', [
  ...FLAT,
  z.object({
    type: z.enum(['GzipDecoder', 'ZipfileDecoder']),
    get decoder(): z.ZodType<Decoder> {
      return Decoder;
    },
  }),
]) as unknown as z.ZodType<Decoder>;
const refused = (what: string) => z.undefined({ error: `${what} is not supported` }).optional();

export interface HttpRequester {
  type: 'HttpRequester';
  /** The class in Python that builds its requests. */
  python?: Record<string, unknown> | undefined;
  url?: string | undefined;
  url_base?: string | undefined;
  path?: string | undefined;
  http_method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  authenticator?: Authenticator | null | undefined;
  error_handler?: ErrorHandler | null | undefined;
  request_parameters?: Entries;
  request_headers?: Entries;
  request_body_json?: Entries;
  request_body_data?: Entries;
  request_body?: { type: string; value: unknown } | null | undefined;
  $parameters?: Record<string, unknown> | undefined;
}
type Entries = Record<string, unknown> | string | null | undefined;

const RequestBody = z.object({
  type: z.enum(['RequestBodyJsonObject', 'RequestBodyUrlEncodedForm', 'RequestBodyPlainText', 'RequestBodyGraphQL']),
  value: templates,
});

export const HttpRequester = z.object({
  type: z.literal('HttpRequester'),
  python: z.record(z.string(), z.unknown()).optional(),
  url: template.optional(),
  url_base: template.optional(),
  path: template.optional(),
  http_method: z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']).default('GET'),
  authenticator: Authenticator.nullish(),
  error_handler: ErrorHandler.nullish(),
  request_parameters: entries.nullish(),
  request_headers: entries.nullish(),
  request_body_json: entries.nullish(),
  request_body_data: entries.nullish(),
  request_body: RequestBody.nullish(),
  query_properties: refused('query_properties'),
  fetch_properties_from_endpoint: refused('fetch_properties_from_endpoint'),
  $parameters: z.record(z.string(), z.unknown()).optional(),
}) as unknown as z.ZodType<HttpRequester>;
/** Where the service builds the requests alone. */
export const PlainRequester = HttpRequester.refine(({ python }) => python === undefined, {
  error: 'a requester in Python is not supported here',
});

const Strategy = z.discriminatedUnion('type', [
  pythonComponent('PythonPagination'),
  z.object({
    type: z.literal('PageIncrement'),
    page_size: numeric.nullish(),
    start_from_page: z.number().default(0),
    inject_on_first_request: z.boolean().default(false),
  }),
  z.object({
    type: z.literal('OffsetIncrement'),
    page_size: numeric.nullish(),
    inject_on_first_request: z.boolean().default(false),
  }),
  z.object({
    type: z.literal('CursorPagination'),
    cursor_value: template,
    stop_condition: template.nullish(),
    page_size: numeric.nullish(),
    decoder: Decoder.nullish(),
  }),
]);
export const Paginator = z.discriminatedUnion('type', [
  z.object({ type: z.literal('NoPagination') }),
  z.object({
    type: z.literal('DefaultPaginator'),
    pagination_strategy: Strategy,
    page_size_option: RequestOption.nullish(),
    page_token_option: z
      .discriminatedUnion('type', [RequestOption, z.object({ type: z.literal('RequestPath') })])
      .nullish(),
    decoder: Decoder.nullish(),
  }),
]);
export type Paginator = z.infer<typeof Paginator>;
export type PaginationStrategy = z.infer<typeof Strategy>;
