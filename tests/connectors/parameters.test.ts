import { expect, test } from 'bun:test';
import { z } from 'zod';
import { defineSource } from '../../server/connectors/contract/connector.ts';
import { describeParameters, parseParameters, secretNames } from '../../server/connectors/contract/parameters.ts';

const config = z
  .object({
    host: z
      .string()
      .min(1)
      .regex(/^\S+$/)
      .meta({ label: 'Host', placeholder: 'db.example.com', validates_remotely: true }),
    port: z.int().min(1).max(65_535).default(5432).meta({ label: 'Port' }),
    password: z.string().optional().meta({ label: 'Password', secret: true, group: 'authentication' }),
    mode: z
      .enum(['fast', 'safe'])
      .default('safe')
      .meta({ label: 'Mode', value_labels: { fast: 'Quick', safe: 'Careful' } }),
    schemas: z
      .array(z.string())
      .default([])
      .meta({ label: 'Schemas', depends_on: ['host'] }),
    kinds: z
      .array(z.enum(['a', 'b']))
      .optional()
      .meta({ label: 'Kinds' }),
    since: z.iso
      .date()
      .optional()
      .meta({ label: 'Since', visible_when: { parameter: 'mode', equals: ['fast'] } }),
    ratio: z.number().optional().meta({ label: 'Ratio' }),
    count: z.int().optional().meta({ label: 'Count' }),
    labels: z.record(z.string(), z.string()).optional().meta({ label: 'Labels' }),
    strict: z.boolean().default(false).meta({ label: 'Strict', description: 'No mercy' }),
  })
  .refine((value) => value.mode !== 'fast' || value.since !== undefined, {
    path: ['since'],
    message: 'fast needs since',
  });
const connector = defineSource<z.infer<typeof config>>({
  type: 'source',
  name: 'parameters',
  display_name: 'Parameters',
  description: '',
  category: 'saas',
  version: '1.0.0',
  release_stage: 'alpha',
  auth_methods: [],
  supported_sync_modes: [],
  pushdown: { masking: [], filters: false },
  config,
  possibleValues: { schemas: async () => ({}) },
  check: async () => ({ checks: [] }),
  discover: async () => [],
  read: async function* () {},
});

test('every setting is described by its zod type and its meta', () => {
  const described = Object.fromEntries(describeParameters(connector).map((parameter) => [parameter.name, parameter]));
  expect(described.host).toEqual({
    name: 'host',
    label: 'Host',
    type: 'string',
    required: true,
    secret: false,
    directs_secrets: true,
    keyed_address: false,
    placeholder: 'db.example.com',
    pattern: '^\\S+$',
    dynamic_possible_values: false,
    group: 'connection',
    order: 0,
    validates_remotely: true,
  });
  expect(described.port).toMatchObject({
    type: 'integer',
    required: false,
    default: 5432,
    minimum: 1,
    maximum: 65_535,
    order: 1,
  });
  expect(described.password).toMatchObject({ secret: true, directs_secrets: false, group: 'authentication' });
  expect(described.mode).toMatchObject({ type: 'enum', possible_values: { fast: 'Quick', safe: 'Careful' } });
  expect(described.schemas).toMatchObject({ type: 'string_list', dynamic_possible_values: true, depends_on: ['host'] });
  expect(described.kinds).toMatchObject({ type: 'multi_enum', possible_values: { a: 'a', b: 'b' } });
  expect(described.since).toMatchObject({ type: 'date', visible_when: { parameter: 'mode', equals: ['fast'] } });
  expect(described.since).not.toHaveProperty('pattern');
  expect(described.ratio).toMatchObject({ type: 'number' });
  expect(described.count).not.toHaveProperty('minimum');
  expect(described.labels).toMatchObject({ type: 'object' });
  expect(described.strict).toMatchObject({ type: 'boolean', description: 'No mercy' });
  expect(secretNames(config)).toEqual(['password']);
});

test('settings are returned with their defaults', () => {
  expect(parseParameters(connector, { host: 'h' })).toEqual({
    config: { host: 'h', port: 5432, mode: 'safe', schemas: [], strict: false },
  });
});

test('each problem names its parameter, and no message contains a value', () => {
  const result = parseParameters(connector, {
    host: '',
    port: 70_000,
    password: 12_345_678,
    hots: 's3cret',
    kinds: ['s3cret'],
  });
  expect(result).toHaveProperty('problems');
  const { problems } = result as Extract<typeof result, { problems: unknown }>;
  expect(problems.map(({ parameter, code }) => [parameter, code])).toEqual([
    ['host', 'missing_parameter'],
    ['port', 'invalid_parameter'],
    ['password', 'invalid_parameter'],
    ['kinds', 'invalid_parameter'],
    ['hots', 'invalid_parameter'],
  ]);
  expect(JSON.stringify(problems)).not.toContain('s3cret');
  expect(JSON.stringify(problems)).not.toContain('12345678');
  expect(parseParameters(connector, {})).toMatchObject({
    problems: [{ parameter: 'host', code: 'missing_parameter' }],
  });
  expect(parseParameters(connector, 'text')).toMatchObject({
    problems: [{ parameter: '', code: 'invalid_parameter' }],
  });
  expect(parseParameters(connector, { host: 'h', mode: 'fast' })).toMatchObject({
    problems: [{ parameter: 'since', code: 'invalid_parameter', message: 'fast needs since' }],
  });
});
