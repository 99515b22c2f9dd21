import { ConfigurationError, SchemaChangedError } from '../../contract/errors.ts';
import { component, componentBudget } from '../components/parameters.ts';
import { AnyStream } from '../components/stream-components.ts';
import type { DynamicStream, Resolver } from '../components/source-components.ts';
import { mapComponents } from './component-mapping.ts';
import { plainIssues } from '../components/issues.ts';
import { allPages, readingBy } from '../retrievers/slices.ts';
import { atPath } from '../interpolation/dpath.ts';
import type { JsonObject } from '../components/references.ts';
import { type FoundStream, type Runtime, unsupportedError } from '../runtime/runtime.ts';
import { isMapping } from '../interpolation/values.ts';

const MAX_STREAMS = 1000;

/** All streams: those that the manifest lists, conditional ones, and dynamic ones. */
export function streamsOf(runtime: Runtime): Promise<FoundStream[]> {
  runtime.found ??= findStreams(runtime);
  return runtime.found;
}

export async function streamOf(runtime: Runtime, name: string): Promise<AnyStream> {
  const stream =
    staticStreams(runtime).find((one) => one.name === name) ??
    (await streamsOf(runtime)).find((one) => one.stream.name === name)?.stream;
  if (!stream) throw new SchemaChangedError('stream_missing', `The manifest no longer has the stream "${name}"`);
  return stream;
}

function staticStreams({ source, templates, scope }: Runtime): AnyStream[] {
  return source.streams.flatMap((one) => {
    if (one.type !== 'ConditionalStreams') return [one];
    return templates.truth(one.condition, { ...scope, parameters: one.$parameters ?? {} }) ? one.streams : [];
  });
}

async function findStreams(runtime: Runtime): Promise<FoundStream[]> {
  const found: FoundStream[] = staticStreams(runtime).map((stream) => ({ stream, template: null }));
  const names = new Set(found.map(({ stream }) => stream.name));
  for (const definition of runtime.source.dynamic_streams) {
    for await (const stream of dynamicStreams(runtime, definition)) {
      if (names.has(stream.name))
        throw new ConfigurationError('duplicate_stream', `The manifest has two streams named "${stream.name}"`);
      names.add(stream.name);
      found.push({ stream, template: definition.name });
      if (found.length > MAX_STREAMS)
        throw new ConfigurationError('too_many_streams', `The manifest has more than ${MAX_STREAMS} streams`);
    }
  }
  return found;
}

async function* dynamicStreams(runtime: Runtime, definition: DynamicStream): AsyncGenerator<AnyStream> {
  const { templates, ctx } = runtime;
  const { components_resolver: resolver, stream_template, use_parent_parameters } = definition;
  const template = stream_template as JsonObject;
  const scope = { ...runtime.scope, parameters: resolver.$parameters ?? {}, stream_template_config: template };
  for await (const values of valuesOf(runtime, definition.name, resolver)) {
    const mapped = mapComponents(template, resolver.components_mapping, { templates, scope: { ...scope, ...values } });
    const whole = component({
      node: mapped,
      place: ['DynamicDeclarativeStream', 'stream_template'],
      parameters: {},
      budget: componentBudget(),
      parentsWin: use_parent_parameters,
    });
    const parsed = AnyStream.safeParse(whole);
    if (parsed.success) {
      yield parsed.data;
      continue;
    }
    const problems = parsed.error.issues
      .flatMap((issue) => plainIssues(issue))
      .map(({ path, message }) => ({
        place: [`stream "${typeof whole.name === 'string' ? whole.name : ''}"`, ...path].join('.'),
        what: message,
      }));
    if (!ctx.config.skip_unsupported_streams) throw unsupportedError(problems);
    ctx.log.info('an unsupported stream is left out', { problems });
  }
}

/** The template variables for each dynamic stream. */
async function* valuesOf(runtime: Runtime, name: string, resolver: Resolver): AsyncGenerator<Record<string, unknown>> {
  if (resolver.type === 'ParametrizedComponentsResolver') {
    for (const values of resolver.stream_parameters.list_of_parameters_for_stream) yield { components_values: values };
    return;
  }
  if (resolver.type === 'ConfigComponentsResolver') {
    for (const values of combined(runtime, resolver)) yield { components_values: values };
    return;
  }
  for await (const { records, slice } of allPages(readingBy(runtime, name, resolver.retriever))) {
    const { values, extra } = slice.partition;
    const stream_slice = { ...values, extra_fields: extra };
    for (const record of records) yield { components_values: record, stream_slice, stream_partition: stream_slice };
  }
}

/** Entries of the configuration. Several lists are combined, each entry with each, into one mapping. */
function combined(
  { templates, scope }: Runtime,
  { stream_config }: Extract<Resolver, { type: 'ConfigComponentsResolver' }>,
): Record<string, unknown>[] {
  const lists = stream_config.map(({ configs_pointer, default_values, $parameters }) => {
    const own = { ...scope, parameters: $parameters ?? {} };
    const path = configs_pointer.map((part) => templates.text(part, own) ?? part);
    const found = atPath(scope.config, path);
    return [...(found === undefined || found === null ? [] : [found].flat()), ...(default_values ?? [])];
  });
  if (lists.reduce((product, list) => product * list.length, 1) > MAX_STREAMS)
    throw new ConfigurationError('too_many_streams', `The configuration results in more than ${MAX_STREAMS} streams`);
  return lists.reduce<Record<string, unknown>[]>(
    (combos, list, at) =>
      combos.flatMap((combo) =>
        list.map((item, index) =>
          isMapping(item) ? { ...combo, ...item } : { ...combo, [`source_config_${at}`]: [index, item] },
        ),
      ),
    [{}],
  );
}
