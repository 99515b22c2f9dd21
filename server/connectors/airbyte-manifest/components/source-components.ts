import { z } from 'zod';
import { refused } from './record-components.ts';
import { AnyStream, oneOrMore, Retriever } from './stream-components.ts';
import { template } from './request-components.ts';
import { plainIssues } from './issues.ts';

const parameters = z.record(z.string(), z.unknown()).optional();

const Mapping = z.object({
  type: z.literal('ComponentMappingDefinition').default('ComponentMappingDefinition'),
  field_path: z.array(template).min(1),
  value: template,
  value_type: z.enum(['string', 'number', 'integer', 'boolean']).nullish(),
  create_or_update: z.boolean().default(false),
  condition: template.nullish(),
});
export type Mapping = z.infer<typeof Mapping>;
const resolving = { components_mapping: z.array(Mapping), $parameters: parameters };
const StreamConfig = z.object({
  configs_pointer: z.array(template),
  default_values: z.array(z.unknown()).nullish(),
  $parameters: parameters,
});
const Resolver = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('HttpComponentsResolver'),
    retriever: Retriever,
    ...resolving,
  }),
  z.object({ type: z.literal('ConfigComponentsResolver'), stream_config: oneOrMore(StreamConfig), ...resolving }),
  z.object({
    type: z.literal('ParametrizedComponentsResolver'),
    stream_parameters: z.object({ list_of_parameters_for_stream: z.array(z.record(z.string(), z.unknown())) }),
    ...resolving,
  }),
]);
export type Resolver = z.infer<typeof Resolver>;

/** Mappings fill in the template later: only what they cannot fix is reported now. */
const Template = z.record(z.string(), z.unknown()).superRefine((unfilled, ctx) => {
  for (const { path, message } of AnyStream.safeParse(unfilled).error?.issues.flatMap((one) => plainIssues(one)) ??
    []) {
    const at = path.at(-1) === 'type' ? path.slice(0, -1) : path;
    const value = at.reduce<unknown>(
      (node, part) => (node as Record<PropertyKey, unknown> | undefined)?.[part],
      unfilled,
    );
    const isUnknownComponent = path.at(-1) === 'type' && typeof value === 'object' && value !== null;
    if (isUnknownComponent || /is not supported$|^in its template/.test(message))
      ctx.addIssue({ code: 'custom', path, message });
  }
});
const DynamicStream = z.object({
  type: z.literal('DynamicDeclarativeStream').default('DynamicDeclarativeStream'),
  name: z.string().default(''),
  stream_template: Template,
  components_resolver: Resolver,
  use_parent_parameters: z.boolean().default(true),
});
export type DynamicStream = z.infer<typeof DynamicStream>;
/** Streams that exist while a condition on the configuration holds. */
const Conditional = z.object({
  type: z.literal('ConditionalStreams'),
  condition: template,
  streams: z.array(AnyStream),
  $parameters: parameters,
});

const Rate = z.object({ limit: z.union([z.number(), template]), interval: template });
const Budget = z.object({
  type: z.literal('HTTPAPIBudget'),
  policies: z.array(
    z.discriminatedUnion('type', [
      z.object({ type: z.literal('FixedWindowCallRatePolicy'), period: template, call_limit: z.number() }),
      z.object({ type: z.literal('MovingWindowCallRatePolicy'), rates: z.array(Rate).min(1) }),
      z.object({ type: z.literal('UnlimitedCallRatePolicy') }),
    ]),
  ),
});

const ConfigChange = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('ConfigAddFields'),
    fields: z.array(
      z.object({
        path: z.array(template).min(1),
        value: template,
        value_type: z.enum(['string', 'number', 'integer', 'boolean']).nullish(),
      }),
    ),
    condition: template.default(''),
  }),
  z.object({
    type: z.literal('ConfigRemoveFields'),
    field_pointers: z.array(z.array(template)),
    condition: template.default(''),
  }),
  z.object({
    type: z.literal('ConfigRemapField'),
    map: z.union([z.record(z.string(), z.unknown()), template]),
    field_path: z.array(template).min(1),
  }),
]);
export type ConfigChange = z.infer<typeof ConfigChange>;
const validation_strategy = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('ValidateAdheresToSchema'),
    base_schema: z.record(z.string(), z.unknown(), { error: 'a base_schema that is no object is not supported' }),
  }),
]);
const ConfigValidation = z.discriminatedUnion('type', [
  z.object({ type: z.literal('DpathValidator'), field_path: z.array(template).min(1), validation_strategy }),
  z.object({ type: z.literal('PredicateValidator'), value: z.unknown(), validation_strategy }),
]);
export type ConfigValidation = z.infer<typeof ConfigValidation>;
const ConfigRules = z.object({
  config_migrations: z.array(z.object({ transformations: z.array(ConfigChange).default([]) })).default([]),
  transformations: z.array(ConfigChange).default([]),
  validations: z.array(ConfigValidation).default([]),
});

export const DeclarativeSource = z.object({
  type: z.literal('DeclarativeSource'),
  version: z.union([z.string(), z.number()]),
  check: z.discriminatedUnion('type', [
    z.object({
      type: z.literal('CheckStream'),
      stream_names: z.array(z.string()).default([]),
      dynamic_streams_check_configs: z
        .array(z.object({ dynamic_stream_name: z.string(), stream_count: z.int().default(0) }))
        .default([]),
    }),
    z.object({ type: z.literal('CheckDynamicStream'), stream_count: z.int() }),
  ]),
  streams: z
    .array(z.discriminatedUnion('type', [AnyStream as unknown as z.ZodObject, Conditional]))
    .max(1000)
    .default([]) as unknown as z.ZodType<(AnyStream | z.infer<typeof Conditional>)[]>,
  dynamic_streams: z.array(DynamicStream).default([]),
  stream_groups: refused('stream_groups'),
  spec: z
    .object({
      connection_specification: z.record(z.string(), z.unknown()),
      config_normalization_rules: ConfigRules.nullish(),
    })
    .optional(),
  api_budget: Budget.optional(),
  concurrency_level: z
    .object({ default_concurrency: z.union([z.number(), template]), max_concurrency: z.number().optional() })
    .optional(),
});
export type DeclarativeSource = z.infer<typeof DeclarativeSource>;
