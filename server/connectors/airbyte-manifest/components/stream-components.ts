import { z } from 'zod';
import { plainIssues } from './issues.ts';
import { DatetimeBasedCursor, type IncrementalSync, IncrementingCountCursor } from './cursor-components.ts';
import {
  DpathExtractor,
  Extractor,
  fieldPath,
  parameters,
  RecordFilter,
  RecordSelector,
  refused,
  SyncTransformation,
  Transformation,
} from './record-components.ts';
import { Decoder, HttpRequester, Paginator, pythonComponent, RequestOption, template } from './request-components.ts';

export const oneOrMore = <Item extends z.ZodType>(item: Item) =>
  z.union([z.array(item), item.transform((one) => [one])]);

const ListRouter = z.object({
  type: z.literal('ListPartitionRouter'),
  cursor_field: template,
  values: z.union([z.array(z.union([template, z.number(), z.boolean()])), template]),
  request_option: RequestOption.nullish(),
  $parameters: parameters,
});
const ParentStreamConfig = z.object({
  type: z.literal('ParentStreamConfig'),
  get stream(): z.ZodType<AnyStream> {
    return AnyStream;
  },
  parent_key: template,
  partition_field: template,
  request_option: RequestOption.nullish(),
  incremental_dependency: z.boolean().nullish(),
  extra_fields: z.array(z.array(template)).nullish(),
  lazy_read_pointer: z.array(template).nullish(),
  $parameters: parameters,
});
export type ParentStreamConfig = z.infer<typeof ParentStreamConfig>;
const SubstreamRouter = z.object({
  type: z.literal('SubstreamPartitionRouter'),
  parent_stream_configs: z.array(ParentStreamConfig).min(1),
});
/** Several partitions of another router in one request. */
const GroupingRouter = z.object({
  type: z.literal('GroupingPartitionRouter'),
  group_size: z.int().min(1),
  underlying_partition_router: z.discriminatedUnion('type', [ListRouter, SubstreamRouter]),
  deduplicate: z.boolean().default(true),
});
/** What parts of a custom component have that the service itself runs. */
const PythonRouter = z.object({
  type: z.literal('PythonRouter'),
  component: z.record(z.string(), z.unknown()).superRefine((component, ctx) => {
    for (const issue of streamIssues(component)) ctx.addIssue({ code: 'custom', ...issue });
  }),
});
export const isStream = (node: object): boolean =>
  'type' in node && (node.type === 'DeclarativeStream' || node.type === 'StateDelegatingStream');

function streamIssues(node: unknown, path: PropertyKey[] = []): { path: PropertyKey[]; message: string }[] {
  if (Array.isArray(node)) return node.flatMap((one, at) => streamIssues(one, [...path, at]));
  if (typeof node !== 'object' || node === null) return [];
  if (!isStream(node)) return Object.entries(node).flatMap(([name, value]) => streamIssues(value, [...path, name]));
  const found = AnyStream.safeParse(node);
  return (found.error?.issues ?? []).flatMap((issue) => plainIssues(issue, path));
}

const Router = z.discriminatedUnion('type', [ListRouter, SubstreamRouter, GroupingRouter, PythonRouter]);
export type Router = z.infer<typeof Router>;

const Requester = z.discriminatedUnion('type', [
  HttpRequester as unknown as z.ZodObject,
]) as unknown as typeof HttpRequester;
interface PropertiesFromEndpoint {
  type: 'PropertiesFromEndpoint';
  property_field_path: string[];
  retriever: Retriever;
}
const PropertiesFromEndpoint = z.object({
  type: z.literal('PropertiesFromEndpoint'),
  property_field_path: fieldPath,
  get retriever(): z.ZodType<Retriever> {
    return Retriever;
  },
}) as unknown as z.ZodType<PropertiesFromEndpoint>;
const QueryProperties = z.object({
  property_list: z.union([z.array(z.string()), PropertiesFromEndpoint]),
  always_include_properties: z.array(z.string()).nullish(),
  property_chunking: z
    .object({
      property_limit_type: z.enum(['characters', 'property_count']).default('property_count'),
      property_limit: z.int().min(1).nullish(),
      record_merge_strategy: z.object({ key: z.union([z.string(), z.array(z.string())]) }).nullish(),
    })
    .nullish(),
  property_selector: z
    .discriminatedUnion('type', [
      z.object({
        type: z.literal('JsonSchemaPropertySelector'),
        transformations: z.array(SyncTransformation).default([]),
        $parameters: parameters,
      }),
    ])
    .nullish(),
  /** The parameter of requests that has the names; absent: templates ask for them. */
  parameter: z.string().optional(),
});
/** The properties that requests ask for, in chunks. */
export type QueryProperties = z.infer<typeof QueryProperties>;
const PaginationReset = z.object({
  action: z.enum(['SPLIT_USING_CURSOR', 'RESET']),
  limits: z.object({ number_of_records: z.int().min(1).nullish() }).nullish(),
});
export type PaginationReset = z.infer<typeof PaginationReset>;
const SimpleRetriever = z.object({
  type: z.literal('SimpleRetriever'),
  requester: Requester,
  query: QueryProperties.nullish(),
  record_selector: RecordSelector,
  paginator: Paginator.nullish(),
  partition_router: oneOrMore(Router).nullish(),
  ignore_stream_slicer_parameters_on_paginated_requests: z.boolean().default(false),
  decoder: Decoder.nullish(),
  request_window_splitting: refused('request_window_splitting'),
  /** A retriever in Python, which asks the service for pages. */
  python: z.record(z.string(), z.unknown()).optional(),
  pagination_reset: PaginationReset.nullish(),
  $parameters: parameters,
});
const statuses = z.array(z.union([z.string(), z.number(), z.boolean()]).transform(String)).default([]);
const JobRequester = Requester.refine(({ python }) => python === undefined, {
  error: 'a requester in Python is not supported here',
});
const Job = z.object({
  creation_requester: JobRequester,
  polling_requester: JobRequester,
  download_target_requester: JobRequester.nullish(),
  abort_requester: JobRequester.nullish(),
  delete_requester: JobRequester.nullish(),
  status_extractor: DpathExtractor,
  download_target_extractor: DpathExtractor.nullish(),
  status_mapping: z.object({
    running: statuses,
    completed: statuses,
    failed: statuses,
    timeout: statuses,
    skipped: statuses,
  }),
  /** In minutes. */
  polling_job_timeout: z.union([z.number(), template]).nullish(),
});
/** A job of the service that prepares the records. */
export type Job = z.infer<typeof Job>;
export type Retriever = RetrieverParts & { job?: Job };
type RetrieverParts = z.infer<typeof SimpleRetriever>;

/** Its downloads are read like any other stream, once the job has been completed. */
const AsyncRetriever = Job.extend({
  type: z.literal('AsyncRetriever'),
  record_selector: RecordSelector,
  download_requester: JobRequester,
  download_extractor: Extractor.nullish(),
  download_paginator: Paginator.nullish(),
  download_decoder: Decoder.nullish(),
  /** Of the responses about the job, which are JSON. */
  decoder: z.object({ type: z.literal('JsonDecoder') }).nullish(),
  partition_router: oneOrMore(Router).nullish(),
  $parameters: parameters,
}).transform((retriever): Retriever => {
  const {
    type: _,
    decoder: __,
    record_selector,
    download_extractor,
    partition_router,
    $parameters,
    ...job
  } = retriever;
  return {
    type: 'SimpleRetriever',
    requester: job.download_requester,
    record_selector: { ...record_selector, extractor: download_extractor ?? record_selector.extractor },
    paginator: job.download_paginator,
    decoder: job.download_decoder,
    partition_router,
    ignore_stream_slicer_parameters_on_paginated_requests: false,
    $parameters,
    job,
  };
});
export const Retriever = z.discriminatedUnion('type', [
  SimpleRetriever,
  AsyncRetriever,
]) as unknown as z.ZodType<Retriever>;

const ItemType: z.ZodType<ItemType> = z.union([
  z.string(),
  z.object({
    field_type: z.string(),
    get items(): z.ZodType<ItemType | undefined> {
      return ItemType.optional();
    },
  }),
]);
/** A type of a dynamic schema; for an array with the type of its items. */
export type ItemType = string | { field_type: string; items?: ItemType | undefined };
const DynamicSchema = z.object({
  type: z.literal('DynamicSchemaLoader'),
  retriever: Retriever,
  schema_filter: z.discriminatedUnion('type', [RecordFilter]).nullish(),
  schema_transformations: z.array(Transformation).default([]),
  schema_type_identifier: z.object({
    schema_pointer: fieldPath.default([]),
    key_pointer: fieldPath,
    type_pointer: fieldPath.nullish(),
    types_mapping: z
      .array(
        z.object({
          target_type: z.union([ItemType, z.array(z.string())]),
          current_type: z.union([z.string(), z.array(z.string())]),
          condition: template.nullish(),
        }),
      )
      .default([]),
    $parameters: parameters,
  }),
  $parameters: parameters,
});
export type DynamicSchema = z.infer<typeof DynamicSchema>;
const SchemaLoader = z.discriminatedUnion('type', [
  DynamicSchema,
  z.object({ type: z.literal('InlineSchemaLoader'), schema: z.record(z.string(), z.unknown()).optional() }),
  pythonComponent('PythonSchemaLoader'),
  // The schema file is not part of the manifest: types are inferred from records.
  z.object({ type: z.literal('JsonFileSchemaLoader') }),
]);
export type SchemaLoader = z.infer<typeof SchemaLoader>;

export interface DeclarativeStream {
  type: 'DeclarativeStream';
  name: string;
  description?: string | undefined;
  primary_key?: string | string[] | string[][] | null | undefined;
  retriever: Retriever;
  schema_loader: SchemaLoader[];
  incremental_sync?: IncrementalSync | null | undefined;
  /** What its files are downloaded by, which are not loaded. */
  file_uploader?: unknown;
  transformations: Transformation[];
  $parameters?: Record<string, unknown> | undefined;
}
/** As with Airbyte: the cursor of partitions is a time. */
const isOneKind = ({
  incremental_sync,
  retriever,
}: {
  incremental_sync?: { type: string } | null;
  retriever: Retriever;
}) => incremental_sync?.type !== 'IncrementingCountCursor' || (retriever.partition_router ?? []).length === 0;
const DeclarativeStream = z
  .object({
    type: z.literal('DeclarativeStream'),
    name: z.string().min(1).max(255),
    description: z.string().optional(),
    primary_key: z.union([z.string(), z.array(z.string()), z.array(z.array(z.string()))]).nullish(),
    retriever: Retriever,
    schema_loader: oneOrMore(SchemaLoader).default([]),
    incremental_sync: z.discriminatedUnion('type', [DatetimeBasedCursor, IncrementingCountCursor]).nullish(),
    transformations: z
      .array(Transformation)
      .nullish()
      .transform((all) => all ?? []),
    file_uploader: z.unknown().optional(),
    $parameters: parameters,
  })
  .refine(isOneKind, {
    error: 'an IncrementingCountCursor with a partition router is not supported',
  }) as unknown as z.ZodType<DeclarativeStream>;

/** Two streams under one name: a full one for the first read, an incremental one afterwards. */
export interface StateDelegatingStream {
  type: 'StateDelegatingStream';
  name: string;
  full_refresh_stream: DeclarativeStream;
  incremental_stream: DeclarativeStream;
  /** How long the service keeps the changes that the incremental stream returns. */
  api_retention_period?: string | null | undefined;
  $parameters?: Record<string, unknown> | undefined;
}
const StateDelegatingStream = z
  .object({
    type: z.literal('StateDelegatingStream'),
    name: z.string().min(1).max(255),
    full_refresh_stream: DeclarativeStream,
    incremental_stream: DeclarativeStream,
    api_retention_period: template.nullish(),
    $parameters: parameters,
  })
  .refine(({ name, full_refresh_stream: full, incremental_stream: rest }) => full.name === name && rest.name === name, {
    error: 'both streams need the name of the StateDelegatingStream',
  })
  .refine(
    ({ api_retention_period: period, ...streams }) =>
      !period ||
      [streams.full_refresh_stream, streams.incremental_stream].every(
        ({ incremental_sync: cursor }) => cursor?.type !== 'IncrementingCountCursor',
      ),
    { error: 'api_retention_period with an IncrementingCountCursor is not supported' },
  ) as unknown as z.ZodType<StateDelegatingStream>;

export type AnyStream = DeclarativeStream | StateDelegatingStream;
export const AnyStream = z.discriminatedUnion('type', [
  DeclarativeStream as unknown as z.ZodObject,
  StateDelegatingStream as unknown as z.ZodObject,
]) as unknown as z.ZodType<AnyStream>;
