import { type CheckResult, defineSource, type StreamSchema } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { describeStream } from './schema/fields.ts';
import { partsOf, readingOf } from './partitions/slices.ts';
import { readStream } from './read.ts';
import { type Context, openManifest, type Runtime } from './runtime.ts';
import { type FoundStream, streamOf, streamsOf } from './streams.ts';
import { AirbyteManifestConfig } from './settings.ts';

export const airbyteManifestSource = defineSource<AirbyteManifestConfig>({
  type: 'source',
  name: 'airbyte_manifest',
  display_name: 'Airbyte manifest',
  description: "Streams of any of Airbyte's low-code connectors, by its manifest",
  category: 'http',
  version: '1.0.0',
  release_stage: 'beta',
  auth_methods: ['none', 'api_key', 'basic', 'oauth2'],
  supported_sync_modes: ['full_refresh', 'incremental'],
  pushdown: { masking: [], filters: false },
  config: AirbyteManifestConfig,
  check,
  discover,
  read: readStream,
});

/** The first page of each stream that the manifest names for its check. */
async function check(ctx: Context): Promise<CheckResult> {
  return await withEnd(ctx, { hurry: true }, async (runtime) => {
    const found = await streamsOf(runtime);
    const checks: CheckResult['checks'] = [{ title: 'Manifest', status: 'passed', message: `${found.length} streams` }];
    for (const name of checkedNames(runtime, found)) {
      const isThere = found.some(({ stream }) => stream.name === name);
      if (!isThere && ctx.config.skip_unsupported_streams) continue;
      if (!isThere)
        throw new ConfigurationError('unknown_stream', `The manifest has no stream "${name}", which its check names`);
      const count = await firstCount(runtime, name);
      checks.push({ title: `First page of ${name}`, status: 'passed', message: `${count} records` });
    }
    return { checks };
  });
}

function checkedNames({ source: { check } }: Runtime, found: FoundStream[]): string[] {
  const first = (count: number, isMeant: (one: FoundStream) => boolean) =>
    found
      .filter(isMeant)
      .slice(0, count)
      .map(({ stream }) => stream.name);
  if (check.type === 'CheckDynamicStream') return first(check.stream_count, ({ template }) => template !== null);
  const dynamic = check.dynamic_streams_check_configs.flatMap(({ dynamic_stream_name, stream_count }) =>
    first(stream_count, ({ template }) => template === dynamic_stream_name),
  );
  const names = [...check.stream_names, ...dynamic];
  return names.length > 0 ? names : first(1, () => true);
}

async function firstCount(runtime: Runtime, name: string): Promise<number> {
  const stream = await streamOf(runtime, name);
  const parts = partsOf(readingOf({ ...runtime, concurrency: 1 }, stream, null));
  try {
    for await (const { items } of parts) for await (const page of items) return page.records.length;
    return 0;
  } finally {
    await parts.return(undefined);
  }
}

async function discover(ctx: Context): Promise<StreamSchema[]> {
  return await withEnd(ctx, { hurry: false }, async (runtime) => {
    const streams: StreamSchema[] = [];
    for (const { stream } of await streamsOf(runtime)) streams.push(await describeStream(runtime, stream));
    return streams;
  });
}

/** Ends what is still on its way when the work is done. */
async function withEnd<Result>(
  ctx: Context,
  options: { hurry: boolean },
  work: (runtime: Runtime) => Promise<Result>,
): Promise<Result> {
  const abort = new AbortController();
  try {
    return await work(openManifest({ ...ctx, signal: AbortSignal.any([ctx.signal, abort.signal]) }, options));
  } finally {
    abort.abort();
  }
}
