import { withQuery } from './query-properties.ts';
import { isObject, type Json, type JsonObject } from './references.ts';

/** Types of components without a `type`, by the component and field that contain them. */
const DEFAULT_TYPES: Record<string, Record<string, string>> = {
  DeclarativeSource: {
    check: 'CheckStream',
    spec: 'Spec',
    streams: 'DeclarativeStream',
    dynamic_streams: 'DynamicDeclarativeStream',
  },
  DeclarativeStream: { retriever: 'SimpleRetriever', schema_loader: 'JsonFileSchemaLoader' },
  DynamicDeclarativeStream: { stream_template: 'DeclarativeStream', components_resolver: 'ConfigComponentsResolver' },
  HttpComponentsResolver: { retriever: 'SimpleRetriever', components_mapping: 'ComponentMappingDefinition' },
  ConfigComponentsResolver: { stream_config: 'StreamConfig', components_mapping: 'ComponentMappingDefinition' },
  DynamicSchemaLoader: { retriever: 'SimpleRetriever', schema_filter: 'RecordFilter' },
  StateDelegatingStream: { full_refresh_stream: 'DeclarativeStream', incremental_stream: 'DeclarativeStream' },
  SimpleRetriever: { paginator: 'NoPagination', record_selector: 'RecordSelector', requester: 'HttpRequester' },
  AsyncRetriever: {
    creation_requester: 'HttpRequester',
    polling_requester: 'HttpRequester',
    download_requester: 'HttpRequester',
    download_target_requester: 'HttpRequester',
    abort_requester: 'HttpRequester',
    delete_requester: 'HttpRequester',
    status_extractor: 'DpathExtractor',
    download_target_extractor: 'DpathExtractor',
    record_selector: 'RecordSelector',
    download_extractor: 'DpathExtractor',
  },
  HttpRequester: {
    error_handler: 'DefaultErrorHandler',
    query_properties: 'QueryProperties',
    fetch_properties_from_endpoint: 'PropertiesFromEndpoint',
  },
  QueryProperties: { property_chunking: 'PropertyChunking' },
  PropertiesFromEndpoint: { retriever: 'SimpleRetriever' },
  SessionTokenAuthenticator: { login_requester: 'HttpRequester' },
  DefaultPaginator: { page_size_option: 'RequestOption', decoder: 'JsonDecoder' },
  CursorPagination: { decoder: 'JsonDecoder' },
  RecordSelector: { extractor: 'DpathExtractor', record_filter: 'RecordFilter' },
  DatetimeBasedCursor: {
    start_datetime: 'MinMaxDatetime',
    end_datetime: 'MinMaxDatetime',
    start_time_option: 'RequestOption',
    end_time_option: 'RequestOption',
  },
  ListPartitionRouter: { request_option: 'RequestOption' },
  SubstreamPartitionRouter: { parent_stream_configs: 'ParentStreamConfig' },
  CustomRequester: { error_handler: 'DefaultErrorHandler' },
  CustomErrorHandler: { response_filters: 'HttpResponseFilter' },
  CustomIncrementalSync: {
    start_datetime: 'MinMaxDatetime',
    end_datetime: 'MinMaxDatetime',
    start_time_option: 'RequestOption',
    end_time_option: 'RequestOption',
  },
  CustomPartitionRouter: { parent_stream_configs: 'ParentStreamConfig' },
  ParentStreamConfig: { stream: 'DeclarativeStream', request_option: 'RequestOption' },
  AddFields: { fields: 'AddedFieldDefinition' },
  CompositeErrorHandler: { error_handlers: 'DefaultErrorHandler' },
  DefaultErrorHandler: { response_filters: 'HttpResponseFilter' },
};

/** A `class_name` without a `type` is a custom component in Python. */
const CUSTOM = 'CustomComponent';
/** Shared components are copied for their `$parameters`: a limit on the copies. */
const MAX_COMPONENTS = 100_000;

/** `$parameters` would expand the document beyond the limit. */
export class TooManyComponents extends Error {}

/** Writes types and `$parameters` into all components, as Airbyte does: a field that has a value keeps it. */
export function propagate(document: JsonObject): JsonObject {
  return component({ node: document, place: ['', 'source'], parameters: {}, budget: componentBudget() });
}

export const componentBudget = () => ({ left: MAX_COMPONENTS });

interface Step {
  node: JsonObject;
  /** The type of the parent component, and the field in it. */
  place: readonly [parent: string, field: string];
  parameters: JsonObject;
  budget: { left: number };
  /** Parameters of the parent take precedence over a component's own, unless they are empty. */
  parentsWin?: boolean;
}

export function component({ node, place, parameters, budget, parentsWin = false }: Step): JsonObject {
  budget.left -= 1;
  if (budget.left < 0) throw new TooManyComponents(`The manifest has more than ${MAX_COMPONENTS} components`);
  const { $parameters: own, ...found } = node;
  if (isSchema(found)) return found;
  const type = found.type ?? (found.class_name === undefined ? DEFAULT_TYPES[place[0]]?.[place[1]] : CUSTOM);
  const mine = isObject(own) ? own : {};
  const known = parentsWin ? { ...mine, ...filled(parameters) } : { ...parameters, ...mine };
  if (typeof type !== 'string') return nested(found, { place, parameters: known, budget, parentsWin });
  const whole: JsonObject = { ...found, type };
  for (const [name, value] of Object.entries(known)) if (isEmpty(whole[name])) whole[name] = value;
  for (const [name, value] of Object.entries(whole)) {
    // A parameter with the name of the field that contains it would recurse without end.
    const { [name]: _, ...below } = known;
    const step = { place: [type, name] as const, parameters: below, budget, parentsWin };
    whole[name] = within(value, step);
  }
  return withQuery(Object.keys(known).length > 0 ? { ...whole, $parameters: known } : whole);
}

const within = (value: Json, step: Omit<Step, 'node'>): Json => {
  if (Array.isArray(value)) return value.map((item) => (isObject(item) ? component({ ...step, node: item }) : item));
  return isObject(value) ? component({ ...step, node: value }) : value;
};

/** Not a component, but it may contain some. */
function nested(node: JsonObject, step: Omit<Step, 'node'>): JsonObject {
  const entries = Object.entries(node).map(([name, value]): [string, Json] => {
    const holds = isObject(value) && (value.type !== undefined || value.class_name !== undefined);
    return [name, holds ? component({ ...step, place: ['', ''], node: value }) : value];
  });
  return Object.fromEntries(entries);
}

const filled = (parameters: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(parameters).filter(([, value]) => !isEmpty(value)));

const isSchema = ({ type }: JsonObject) => type === 'object' || (Array.isArray(type) && type.includes('object'));

const isEmpty = (value: Json | undefined) =>
  value === undefined ||
  value === null ||
  value === '' ||
  value === false ||
  value === 0 ||
  (Array.isArray(value) && value.length === 0) ||
  (isObject(value) && Object.keys(value).length === 0);
