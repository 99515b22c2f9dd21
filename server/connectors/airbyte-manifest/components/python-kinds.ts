/** A kind of component that may be in Python. */
interface Kind {
  /** The fields that may contain it. */
  fields: readonly string[];
  /** The classes of the CDK that it may extend. */
  bases: readonly string[];
  /** The declarative component that it extends: the service runs it, and asks Python for what it overrides. */
  extends?: string;
  /** Methods of the declarative component that the service would not call. */
  unused?: readonly string[];
  /** Components that it may contain besides `PARTS`. */
  parts?: readonly string[];
}

const BACKOFFS = [
  'ConstantBackoffStrategy',
  'ExponentialBackoffStrategy',
  'WaitTimeFromHeader',
  'WaitUntilTimeFromHeader',
];
const HANDLERS = ['DefaultErrorHandler', 'CompositeErrorHandler', 'HttpResponseFilter', ...BACKOFFS];
const AUTHENTICATORS = [
  'NoAuth',
  'BasicHttpAuthenticator',
  'BearerAuthenticator',
  'ApiKeyAuthenticator',
  'OAuthAuthenticator',
  'SessionTokenAuthenticator',
  'JwtAuthenticator',
  'SelectiveAuthenticator',
];

export type PythonKind =
  | 'PythonTransformation'
  | 'PythonExtractor'
  | 'PythonFilter'
  | 'PythonAuthenticator'
  | 'PythonRouter'
  | 'PythonPagination'
  | 'PythonBackoff'
  | 'PythonSchemaLoader'
  | 'PythonRequester'
  | 'PythonErrorHandler'
  | 'PythonCursor'
  | 'PythonRetriever'
  | 'PythonNormalization';

export const KINDS: Record<PythonKind, Kind> = {
  PythonTransformation: {
    fields: ['transformations', 'schema_transformations'],
    bases: ['RecordTransformation', 'AddFields'],
    parts: ['HttpRequester', 'RecordSelector', 'RecordFilter'],
  },
  PythonExtractor: { fields: ['extractor'], bases: ['RecordExtractor', 'DpathExtractor'] },
  PythonFilter: { fields: ['record_filter'], bases: ['RecordFilter'] },
  PythonAuthenticator: {
    fields: ['authenticator', 'authenticators'],
    bases: [
      'NoAuth',
      'DeclarativeAuthenticator',
      'BasicHttpAuthenticator',
      'DeclarativeOauth2Authenticator',
      'DeclarativeSingleUseRefreshTokenOauth2Authenticator',
    ],
  },
  PythonRouter: {
    fields: ['partition_router'],
    bases: ['SubstreamPartitionRouter', 'StreamSlicer', 'PartitionRouter'],
    unused: ['get_request_params', 'get_request_headers', 'get_request_body_data', 'get_request_body_json'],
  },
  PythonPagination: {
    fields: ['pagination_strategy'],
    bases: ['PaginationStrategy', 'PageIncrement', 'CursorPaginationStrategy'],
  },
  PythonBackoff: { fields: ['backoff_strategies'], bases: ['BackoffStrategy'] },
  PythonSchemaLoader: { fields: ['schema_loader'], bases: ['SchemaLoader', 'JsonFileSchemaLoader'] },
  PythonRequester: {
    fields: ['requester'],
    bases: ['HttpRequester'],
    extends: 'HttpRequester',
    parts: [...AUTHENTICATORS, ...HANDLERS],
  },
  PythonErrorHandler: {
    fields: ['error_handler', 'error_handlers'],
    bases: ['DefaultErrorHandler'],
    extends: 'DefaultErrorHandler',
    unused: ['backoff_time', 'max_retries', 'max_time'],
    parts: HANDLERS,
  },
  PythonCursor: {
    fields: ['incremental_sync'],
    bases: ['DatetimeBasedCursor'],
    extends: 'DatetimeBasedCursor',
    unused: (
      'get_stream_state set_initial_state observe close_slice stream_slices select_best_end_datetime ' +
      'select_state should_be_synced is_greater_than_or_equal set_runtime_lookback_window parse_date ' +
      '_partition_daterange _calculate_earliest_possible_value _calculate_cursor_datetime_from_state _format_datetime'
    ).split(' '),
    parts: ['MinMaxDatetime'],
  },
  PythonRetriever: {
    fields: ['retriever'],
    bases: ['SimpleRetriever'],
    extends: 'SimpleRetriever',
    unused: (
      'stream_slices _paginator_path _request_headers _request_params _request_body_data _request_body_json ' +
      '_get_request_options _parse_response must_deduplicate_query_params'
    ).split(' '),
  },
  PythonNormalization: { fields: ['schema_normalization'], bases: ['TypeTransformer'] },
};

export const kindOf = (field: string | null): PythonKind | null =>
  (Object.keys(KINDS) as PythonKind[]).find((name) => KINDS[name].fields.includes(field ?? '')) ?? null;

/** Components that the sandbox, or the service for it, provides to any custom one. */
export const PARTS: ReadonlySet<string> = new Set([
  'JsonDecoder',
  'JsonlDecoder',
  'DpathExtractor',
  'BasicHttpAuthenticator',
  'BearerAuthenticator',
  'ApiKeyAuthenticator',
  'OAuthAuthenticator',
  'AddedFieldDefinition',
  'ParentStreamConfig',
  'RequestOption',
  'InlineSchemaLoader',
  'JsonFileSchemaLoader',
]);

/** What the sandbox's `airbyte_cdk` has. */
export const CDK_NAMES: ReadonlySet<string> = new Set(
  (
    'Config Record StreamState FieldPointer StreamSlice InterpolatedString InterpolatedBoolean Decoder JsonDecoder ' +
    'JsonlDecoder RecordExtractor DpathExtractor RecordFilter RecordTransformation AddFields AddedFieldDefinition ' +
    'DeclarativeAuthenticator NoAuth BasicHttpAuthenticator BearerAuthenticator ApiKeyAuthenticator SyncMode FailureType ' +
    'Type AirbyteMessage Stream ParentStreamConfig StreamSlicer PartitionRouter SubstreamPartitionRouter ' +
    'PaginationStrategy PageIncrement CursorPaginationStrategy AirbyteTracedException AbstractHeaderAuthenticator ' +
    'DeclarativeOauth2Authenticator DeclarativeSingleUseRefreshTokenOauth2Authenticator DefaultBackoffException ' +
    'AirbyteDateTime ab_datetime_now ab_datetime_parse ab_datetime_format DatetimeParser SchemaLoader InlineSchemaLoader ' +
    'JsonFileSchemaLoader HttpRequester HttpClient HttpMethod RequestOption RequestOptionType ResponseAction ' +
    'ErrorResolution SUCCESS_RESOLUTION create_fallback_error_resolution DEFAULT_ERROR_MAPPING RequestInput ' +
    'BODY_REQUEST_METHODS UserDefinedBackoffException RequestBodyException BackoffStrategy ConstantBackoffStrategy ' +
    'ExponentialBackoffStrategy WaitTimeFromHeaderBackoffStrategy ErrorHandler DefaultErrorHandler HttpStatusErrorHandler ' +
    'HttpResponseFilter DefaultHttpResponseFilter InterpolatedRequestInputProvider InterpolatedRequestOptionsProvider ' +
    'DatetimeBasedCursor APIBudget add_to_secrets InMemoryMessageRepository NoopMessageRepository Requester HttpSelector ' +
    'RecordSelector SimpleRetriever StreamData SinglePartitionRouter ListPartitionRouter TokenProvider HttpStream ' +
    'InterpolatedStringTokenProvider SelectiveAuthenticator TokenAuthenticator TransformConfig TypeTransformer'
  ).split(' '),
);

export const STANDARD_MODULES: ReadonlySet<string> = new Set(
  (
    '__future__ abc ast base64 binascii bisect calendar collections contextlib copy csv dataclasses datetime decimal ' +
    'difflib enum fractions functools hashlib heapq hmac html http io itertools json logging math numbers operator ' +
    'random re secrets statistics string struct textwrap time traceback types typing unicodedata urllib uuid warnings ' +
    'xml zlib gzip typing_extensions'
  ).split(' '),
);

const PENDULUM = 'parse now today datetime from_format from_timestamp DateTime Date UTC duration Duration parsing';
const REQUESTS =
  'Response PreparedRequest Request Session session request get post put patch delete exceptions auth models ' +
  'RequestException HTTPError ConnectionError Timeout InvalidURL JSONDecodeError';
/** What the sandbox has of libraries, by its modules. */
export const LIBRARIES: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    requests: REQUESTS,
    'requests.exceptions': 'RequestException HTTPError ConnectionError Timeout InvalidURL JSONDecodeError',
    'requests.auth': 'AuthBase HTTPBasicAuth',
    'requests.models': 'Response PreparedRequest Request',
    requests_cache: 'Response',
    dpath: 'get values new set search util',
    'dpath.util': 'get values new set search',
    pendulum: PENDULUM,
    'pendulum.parsing.exceptions': 'ParserError',
    isodate: 'parse_duration Duration',
    dateutil: 'parser',
    'dateutil.parser': 'parse',
    pytz: 'UTC utc',
    jwt: 'encode',
    yaml: 'safe_load',
    backoff: 'on_exception expo constant',
    pkgutil: 'get_data',
  }).map(([module, names]) => [module, new Set(names.split(' '))]),
);
