import { z } from 'zod';
import type { ConnectorOutline } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { type Manifest, parseManifest } from '../components/parse-manifest.ts';
import type { DeclarativeSource } from '../components/source-components.ts';
import type { AnyStream, DeclarativeStream } from '../components/stream-components.ts';
import { AirbyteManifestConfig, filesOf } from '../runtime/settings.ts';
import { unsupportedError } from '../runtime/runtime.ts';
import { typeOf } from './describe-stream.ts';
import { secretDirections } from './secret-directions.ts';

const { manifest, components, files } = AirbyteManifestConfig.shape;
const Documents = z.object({ manifest, components, files });

/** What a manifest declares, without any request. @throws ConfigurationError `invalid_manifest`, `unsupported_manifest` */
export function outlineManifest(parameters: Record<string, unknown>): ConnectorOutline {
  const given = Documents.safeParse(parameters);
  if (!given.success) throw new ConfigurationError('invalid_manifest', given.error.issues[0]?.message ?? '');
  const python = filesOf(given.data);
  const parsed = parseManifest(given.data.manifest, python);
  if (!parsed.manifest) throw new ConfigurationError('invalid_manifest', parsed.problem);
  const { source, specification, unsupported } = parsed.manifest;
  if (!source) throw unsupportedError(unsupported);
  return {
    streams: streamsIn(source).map(outlineStream),
    parameters: parametersIn(specification ?? {}, ''),
    specification: specification && withOrder(specification),
    unsupported,
    directs_secrets: secretDirections(parsed.manifest, source, python),
    documentation_url: documentationOf(parsed.manifest),
  };
}

const streamsIn = ({ streams }: DeclarativeSource): AnyStream[] =>
  streams.flatMap((one) => (one.type === 'ConditionalStreams' ? one.streams : [one]));

function outlineStream(stream: AnyStream): ConnectorOutline['streams'][number] {
  const whole = stream.type === 'StateDelegatingStream' ? stream.full_refresh_stream : stream;
  return {
    name: stream.name,
    primary_key: keyOf(whole),
    cursor_field: whole.incremental_sync?.cursor_field ?? null,
    fields: fieldsOf(whole),
  };
}

function keyOf({ primary_key: key }: DeclarativeStream): string[] {
  if (key === null || key === undefined || key === '') return [];
  return typeof key === 'string' ? [key] : key.map((part) => (typeof part === 'string' ? part : part.join('.')));
}

/** Of several loaders the first one takes precedence. */
function fieldsOf({ schema_loader }: DeclarativeStream): Record<string, ReturnType<typeof typeOf>> | null {
  const properties: Record<string, Parameters<typeof typeOf>[0]> = {};
  for (const loader of schema_loader.toReversed()) {
    if (loader.type !== 'InlineSchemaLoader') return null;
    Object.assign(properties, loader.schema?.['properties']);
  }
  const entries = Object.entries(properties);
  return entries.length === 0 ? null : Object.fromEntries(entries.map(([name, one]) => [name, typeOf(one)]));
}

const MAX_DEPTH = 10;
type Parameter = ConnectorOutline['parameters'][number];

/** The settings of a spec, those in all alternatives included, each once. */
function parametersIn(schema: unknown, path: string, depth = 0): Parameter[] {
  if (typeof schema !== 'object' || schema === null || depth > MAX_DEPTH) return [];
  const { properties, required, oneOf, anyOf, allOf } = schema as Record<string, unknown>;
  const needed = new Set(Array.isArray(required) ? required : []);
  const named = typeof properties === 'object' && properties !== null ? Object.entries(properties) : [];
  const own = named.flatMap(([name, part]): Parameter[] => {
    const place = path === '' ? name : `${path}.${name}`;
    const inside = parametersIn(part, place, depth + 1);
    return inside.length > 0 ? inside : [parameterOf(place, part, needed.has(name))];
  });
  const branches = [oneOf, anyOf, allOf].flatMap((list) => (Array.isArray(list) ? list : []));
  const all = [...own, ...branches.flatMap((branch) => parametersIn(branch, path, depth + 1))];
  return all.filter(({ name }, at) => all.findIndex((other) => other.name === name) === at);
}

/** The specification with the place of each setting in `order`, as Airbyte's forms read it: JSON in the database has none. */
function withOrder<Schema>(schema: Schema, depth = 0): Schema {
  if (typeof schema !== 'object' || schema === null || depth > MAX_DEPTH * 2) return schema;
  if (Array.isArray(schema)) return schema.map((part) => withOrder(part, depth + 1)) as Schema;
  const { properties, ...rest } = schema as Record<string, unknown>;
  const parts = ['items', 'oneOf', 'anyOf', 'allOf'].filter((name) => rest[name] !== undefined);
  const named = typeof properties === 'object' && properties !== null ? Object.entries(properties) : [];
  return {
    ...rest,
    ...Object.fromEntries(parts.map((name) => [name, withOrder(rest[name], depth + 1)])),
    ...(properties !== undefined && {
      properties: Object.fromEntries(
        named.map(([name, part]: [string, object], order) => [name, { order, ...withOrder(part, depth + 1) }]),
      ),
    }),
  } as Schema;
}

function parameterOf(name: string, schema: unknown, required: boolean): Parameter {
  const { type, airbyte_secret } = (typeof schema === 'object' && schema !== null ? schema : {}) as Record<
    string,
    unknown
  >;
  const names = [type].flat().filter((one) => typeof one === 'string');
  return { name, type: names.join('|') || 'any', required, secret: airbyte_secret === true };
}

/** Only an https address can be a link. */
function documentationOf({ documentation_url }: Manifest): string | null {
  const url = documentation_url === null ? null : URL.parse(documentation_url);
  return url?.protocol === 'https:' ? url.href : null;
}
