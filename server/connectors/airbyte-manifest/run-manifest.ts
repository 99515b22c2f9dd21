import type { CheckResult, StreamSchema } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { describeStream, jsonSchemaOf } from './schema/describe-stream.ts';
import { allPages, readingOf } from './retrievers/slices.ts';
import { withRequests } from '../kits/rest/read-scope.ts';
import { streamOf, streamsOf } from './resolvers/streams.ts';
import { type FoundStream, openManifest, type Runtime } from './runtime/runtime.ts';
import type { Context } from './runtime/settings.ts';

export { manifestConsent } from './auth/consent.ts';
export { readStream } from './read.ts';
export { outlineManifest } from './schema/outline.ts';

/** The first page of each stream that the manifest names for its check. */
export async function checkManifest(given: Context): Promise<CheckResult> {
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

export async function discoverManifest(given: Context): Promise<StreamSchema[]> {
  return await withRequests(given, async (ctx) => {
    const runtime = openManifest(ctx, { interactive: false, schemaOf: jsonSchemaOf });
    const streams: StreamSchema[] = [];
    for (const { stream } of await streamsOf(runtime)) streams.push(await describeStream(runtime, stream));
    return streams;
  });
}
