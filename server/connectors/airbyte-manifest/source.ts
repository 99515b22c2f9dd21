import { type CheckResult, defineSource, type StreamSchema } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { manifestConsent } from './auth/consent.ts';
import { describeStream, jsonSchemaOf } from './schema/describe-stream.ts';
import { allPages, readingOf } from './retrievers/slices.ts';
import { withRequests } from '../kits/rest/read-scope.ts';
import { readStream } from './read.ts';
import { outlineManifest } from './schema/outline.ts';
import { streamOf, streamsOf } from './resolvers/streams.ts';
import { type FoundStream, openManifest, type Runtime } from './runtime/runtime.ts';
import { AirbyteManifestConfig, type Context } from './runtime/settings.ts';

export const airbyteManifestSource = defineSource<AirbyteManifestConfig>({
  type: 'source',
  name: 'airbyte_manifest',
  display_name: 'Airbyte manifest',
  description: 'Runs a low-code connector of Airbyte from its manifest',
  category: 'http',
  version: '1.0.0',
  release_stage: 'beta',
  auth_methods: ['none', 'api_key', 'basic', 'oauth2'],
  consent: manifestConsent,
  supported_sync_modes: ['full_refresh', 'incremental'],
  pushdown: { masking: [], filters: false },
  config: AirbyteManifestConfig,
  check: checkManifest,
  discover,
  read: readStream,
  outline: outlineManifest,
});

/** The first page of each stream that the manifest names for its check. */
async function checkManifest(given: Context): Promise<CheckResult> {
  return await withRequests(given, async (ctx) => {
    const runtime = openManifest(ctx, { interactive: true, schemaOf: jsonSchemaOf });
    const found = await streamsOf(runtime);
    const checks: CheckResult['checks'] = [{ title: 'Manifest', status: 'passed', message: `${found.length} streams` }];
    for (const name of checkedNames(runtime, found)) {
      const exists = found.some(({ stream }) => stream.name === name);
      if (!exists && ctx.config.skip_unsupported_streams) continue;
      if (!exists)
        throw new ConfigurationError(
          'unknown_stream',
          `The check of the manifest names the stream "${name}", which does not exist`,
        );
      const count = await firstCount(runtime, name);
      runtime.guards.finish(ctx);
      checks.push({ title: `First page of ${name}`, status: 'passed', message: `${count} records` });
    }
    return { checks };
  });
}

function checkedNames({ source: { check } }: Runtime, found: FoundStream[]): string[] {
  const first = (count: number, isCounted: (one: FoundStream) => boolean) =>
    found
      .filter(isCounted)
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
  const pages = allPages(readingOf({ ...runtime, concurrency: 1 }, stream, null));
  for await (const page of pages) return page.records.length;
  return 0;
}

async function discover(given: Context): Promise<StreamSchema[]> {
  return await withRequests(given, async (ctx) => {
    const runtime = openManifest(ctx, { interactive: false, schemaOf: jsonSchemaOf });
    const streams: StreamSchema[] = [];
    for (const { stream } of await streamsOf(runtime)) streams.push(await describeStream(runtime, stream));
    return streams;
  });
}
