import { ConfigurationError, SchemaChangedError } from '../contract/errors.ts';
import { component, mostComponents } from './components/parameters.ts';
import { AnyStream } from './components/stream-components.ts';
import type { DynamicStream, Resolver } from './components/source-components.ts';
import { mapped } from './components/component-mapping.ts';
import { plainIssues } from './components/issues.ts';
import { partsOf, readingBy } from './partitions/slices.ts';
import { atPath } from './extractors/paths.ts';
import type { JsonObject } from './components/references.ts';
import { type Runtime, unsupportedError } from './runtime.ts';
import { isMapping } from './interpolation/values.ts';

export interface FoundStream {
  stream: AnyStream;
  /** The name of the template that it was made of; null: it stands in the manifest. */
  template: string | null;
}

const MOST_STREAMS = 1000;

/** All streams: those of the manifest, those whose condition holds, and those that templates make. */
export function streamsOf(runtime: Runtime): Promise<FoundStream[]> {
  runtime.found ??= findStreams(runtime);
  return runtime.found;
}

export async function streamOf(runtime: Runtime, name: string): Promise<AnyStream> {
  const stream =
    staticStreams(runtime).find((one) => one.name === name) ??
    (await streamsOf(runtime)).find((one) => one.stream.name === name)?.stream;
  if (!stream) throw new SchemaChangedError('stream_missing', `The manifest has no stream "${name}" any more`);
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
    for await (const stream of madeOf(runtime, definition)) {
      if (names.has(stream.name))
        throw new ConfigurationError('duplicate_stream', `The manifest makes two streams "${stream.name}"`);
      names.add(stream.name);
      found.push({ stream, template: definition.name });
      if (found.length > MOST_STREAMS)
        throw new ConfigurationError('too_many_streams', `The manifest makes more than ${MOST_STREAMS} streams`);
    }
  }
  return found;
}

async function* madeOf(runtime: Runtime, definition: DynamicStream): AsyncGenerator<AnyStream> {
  const { templates, ctx } = runtime;
  const { components_resolver: resolver, stream_template, use_parent_parameters } = definition;
  const template = stream_template as JsonObject;
  const scope = { ...runtime.scope, parameters: resolver.$parameters ?? {}, stream_template_config: template };
  for await (const values of valuesOf(runtime, definition.name, resolver)) {
    const filled = mapped(template, resolver.components_mapping, { templates, scope: { ...scope, ...values } });
    const whole = component({
      node: filled,
      place: ['DynamicDeclarativeStream', 'stream_template'],
      parameters: {},
      budget: mostComponents(),
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
    ctx.log.info('a stream is left out', { problems });
  }
}

/** What templates see for each stream that is to be made. */
async function* valuesOf(runtime: Runtime, name: string, resolver: Resolver): AsyncGenerator<Record<string, unknown>> {
  if (resolver.type === 'ParametrizedComponentsResolver') {
    for (const values of resolver.stream_parameters.list_of_parameters_for_stream) yield { components_values: values };
    return;
  }
  if (resolver.type === 'ConfigComponentsResolver') {
    for (const values of combined(runtime, resolver)) yield { components_values: values };
    return;
  }
  for await (const { of: part, items } of partsOf(readingBy(runtime, name, resolver.retriever))) {
    const { values, extra } = part.partition;
    const stream_slice = { ...values, extra_fields: extra };
    for await (const page of items)
      for (const record of page.records)
        yield { components_values: record, stream_slice, stream_partition: stream_slice };
  }
}

/** Entries of the configuration; of several lists each with each, as one mapping. */
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
  if (lists.reduce((product, list) => product * list.length, 1) > MOST_STREAMS)
    throw new ConfigurationError('too_many_streams', `The configuration makes more than ${MOST_STREAMS} streams`);
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
