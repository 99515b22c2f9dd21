import {
  AnyStream,
  type DeclarativeStream,
  isStream,
  type ParentStreamConfig,
  type Router,
} from '../components/stream-components.ts';
import { inPython } from '../python/session.ts';
import type { Injection } from '../requests/build-request.ts';
import { atPath } from '../interpolation/dpath.ts';
import type { ApiRecord } from '../../kits/rest/records.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { truthy } from '../interpolation/values.ts';
import { pyText } from '../interpolation/python-literal.ts';

/** One of the partitions that a stream is read in, independent of its intervals. */
export interface Partition {
  values: Record<string, unknown>;
  /** Extra fields of the parent's record. */
  extra: Record<string, unknown>;
  injections: Injection[];
  /** The first page, which the parent's record has; absent: it is requested. */
  child?: unknown;
}

export const WHOLE: Partition = { values: {}, extra: {}, injections: [] };

/** Reads the records of parent streams. */
export interface ParentReader {
  /** Each with its own partition. */
  records(config: ParentStreamConfig): AsyncGenerator<{ record: ApiRecord; partition: Partition }>;
  /** The slices of a stream that a router in Python has, and the records of one; null: of all. */
  slices(stream: AnyStream): Promise<CustomSlice[]>;
  inSlice(stream: AnyStream, key: string | null): Promise<ApiRecord[]>;
}

export interface CustomSlice {
  key: string;
  partition: Record<string, unknown>;
  cursor_slice: Record<string, unknown>;
}

/** The partitions of a stream. Several routers are combined, each partition with each. */
export async function* partitionsOf(
  runtime: Runtime,
  stream: DeclarativeStream,
  parents: ParentReader,
): AsyncGenerator<Partition> {
  const routers = stream.retriever.partition_router ?? [];
  if (routers.length === 0) yield WHOLE;
  else yield* product(runtime, routers, parents);
}

async function* product(
  runtime: Runtime,
  routers: readonly Router[],
  parents: ParentReader,
): AsyncGenerator<Partition> {
  const [first, ...rest] = routers;
  if (!first) return;
  let others: Partition[] | null = null;
  for await (const partition of routed(runtime, first, parents)) {
    if (rest.length === 0) yield partition;
    else {
      others ??= await Array.fromAsync(product(runtime, rest, parents));
      for (const more of others) yield joined(partition, more);
    }
  }
}

/** As with Airbyte, the first router that has a field takes precedence. */
const joined = (a: Partition, b: Partition): Partition => ({
  values: { ...b.values, ...a.values },
  extra: { ...b.extra, ...a.extra },
  injections: [...a.injections, ...b.injections],
});

async function* routed(runtime: Runtime, router: Router, parents: ParentReader): AsyncGenerator<Partition> {
  if (router.type === 'ListPartitionRouter') yield* listed(runtime, router);
  else if (router.type === 'GroupingPartitionRouter') yield* grouped(runtime, router, parents);
  else if (router.type === 'PythonRouter') yield* custom(runtime, router.component, parents);
  else for (const config of router.parent_stream_configs) yield* ofParent(runtime, config, parents);
}

/** One partition for several of another router, with lists of their values. */
async function* grouped(
  runtime: Runtime,
  { underlying_partition_router: inner, group_size, deduplicate }: Extract<Router, { type: 'GroupingPartitionRouter' }>,
  parents: ParentReader,
): AsyncGenerator<Partition> {
  let group: Partition[] = [];
  const seen = new Set<string>();
  for await (const partition of routed(runtime, inner, parents)) {
    const { parent_slice: _, ...values } = partition.values;
    const key = partitionKey({ ...partition, values });
    if (deduplicate && seen.has(key)) continue;
    if (deduplicate) seen.add(key);
    group.push(partition);
    if (group.length < group_size) continue;
    yield together(group);
    group = [];
  }
  if (group.length > 0) yield together(group);
}

function together(group: readonly Partition[]): Partition {
  const lists = (all: Record<string, unknown>[]) =>
    Object.fromEntries(
      [...new Set(all.flatMap((one) => Object.keys(one)))].map((name) => [name, all.map((one) => one[name] ?? null)]),
    );
  return {
    values: lists(group.map(({ values }) => values)),
    extra: lists(group.map(({ extra }) => extra)),
    injections: [],
  };
}

/** The partitions that a router in Python returns, all at once. */
async function* custom(
  runtime: Runtime,
  component: Record<string, unknown>,
  parents: ParentReader,
): AsyncGenerator<Partition> {
  const streams: AnyStream[] = [];
  const named = namedStreams(component, streams);
  const streamAt = (path: number) => {
    const stream = streams[path];
    if (!stream) throw new Error('a component asks for a stream that it does not have');
    return stream;
  };
  const host = {
    slices: async (path: number) => await parents.slices(streamAt(path)),
    read: async (path: number, key: string | null) => await parents.inSlice(streamAt(path), key),
  };
  const found = await inPython(runtime.python).callAlone(named, 'slices', [], { host });
  const options = optionsOf(runtime, component);
  for (const { partition, cursor_slice, extra_fields } of found as CustomPartition[]) {
    const values = { ...partition, ...cursor_slice };
    const injections = options.flatMap(({ field, option }) =>
      truthy(values[field]) ? [{ option, value: values[field] }] : [],
    );
    yield { values, extra: extra_fields, injections };
  }
}

interface CustomPartition {
  partition: Record<string, unknown>;
  cursor_slice: Record<string, unknown>;
  extra_fields: Record<string, unknown>;
}

/** The component with a number in the place of each stream. */
function namedStreams(node: unknown, streams: AnyStream[]): unknown {
  if (Array.isArray(node)) return node.map((one) => namedStreams(one, streams));
  if (typeof node !== 'object' || node === null) return node;
  const parsed = isStream(node) ? AnyStream.parse(node) : null;
  if (parsed) return { type: 'DeclarativeStream', name: parsed.name, $path: streams.push(parsed) - 1 };
  return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, namedStreams(value, streams)]));
}

/** What the base class of substream routers injects into requests. */
function optionsOf({ templates, scope }: Runtime, component: Record<string, unknown>) {
  const configs = Array.isArray(component.parent_stream_configs) ? component.parent_stream_configs : [];
  return (configs as ParentStreamConfig[]).flatMap(({ request_option: option, partition_field, $parameters }) => {
    const own = { ...scope, parameters: $parameters ?? {} };
    return option ? [{ option, field: templates.text(partition_field, own) ?? partition_field }] : [];
  });
}

function* listed(
  { templates, scope }: Runtime,
  router: Extract<Router, { type: 'ListPartitionRouter' }>,
): Generator<Partition> {
  const own = { ...scope, parameters: router.$parameters ?? {} };
  // A list in the manifest is a list of texts: `1.10` is not a number.
  const listedValue = (one: unknown) => (typeof one === 'string' ? (templates.text(one, own) ?? '') : pyText(one));
  const found =
    typeof router.values === 'string'
      ? templates.value(router.values, own)
      : router.values.map((one) => listedValue(one));
  const field = templates.text(router.cursor_field, own) ?? router.cursor_field;
  for (const value of found === null ? [] : [found].flat()) {
    const injections = router.request_option && truthy(value) ? [{ option: router.request_option, value }] : [];
    yield { values: { [field]: value }, extra: {}, injections };
  }
}

async function* ofParent(
  { templates, scope }: Runtime,
  config: ParentStreamConfig,
  parents: ParentReader,
): AsyncGenerator<Partition> {
  const own = { ...scope, parameters: config.$parameters ?? {} };
  const text = (template: string) => templates.text(template, own) ?? template;
  const key = text(config.parent_key).split('/');
  const field = text(config.partition_field);
  for await (const { record, partition } of parents.records(config)) {
    const value = atPath(record, key);
    // A parent record without the key has no children.
    if (value === undefined || value === null) continue;
    const extra = (config.extra_fields ?? [])
      .map((path) => path.map(text))
      .map((path) => [path.join('.'), atPath(record, path) ?? null]);
    const injections = config.request_option && truthy(value) ? [{ option: config.request_option, value }] : [];
    const pointer = config.lazy_read_pointer?.map(text) ?? [];
    const values = { [field]: value, parent_slice: partition.values };
    const child = pointer.length > 0 ? { child: atPath(record, pointer) ?? [] } : {};
    yield { values, extra: Object.fromEntries(extra), injections, ...child };
  }
}

/** Identifies a partition. The order of the values does not matter. */
export const partitionKey = ({ values }: Partition): string => JSON.stringify(sorted(values));

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const names = Object.keys(value).toSorted();
  if (names.length === 0) return pyText(value);
  return Object.fromEntries(names.map((name) => [name, sorted((value as Record<string, unknown>)[name])]));
}
