import { type CheckResult, defineSource, type StreamSchema, type TriedPage } from '../contract/connector.ts';
import { TimeoutError } from '../contract/errors.ts';
import { withRequests } from '../kits/rest/read-scope.ts';
import { type Api, type Context, openApi, streamOf } from './api.ts';
import { describeStream, schemaFrom } from './columns.ts';
import { httpApiConsent } from './consent.ts';
import { allSlices, firstPage, readPages } from './pages.ts';
import type { StreamDefinition } from './definition.ts';
import { readStream } from './read.ts';
import { HttpApiConfig } from './settings.ts';
import { draftDefinition } from './openapi/draft-definition.ts';

export const httpApiSource = defineSource<HttpApiConfig>({
  type: 'source',
  name: 'http_api',
  display_name: 'REST API',
  description: 'Records of any JSON API over HTTP, described in YAML or JSON',
  category: 'http',
  version: '1.0.0',
  release_stage: 'generally_available',
  auth_methods: ['none', 'api_key', 'basic', 'oauth2'],
  consent: httpApiConsent,
  supported_sync_modes: ['full_refresh', 'incremental'],
  pushdown: { masking: [], filters: false },
  config: HttpApiConfig,
  check,
  discover,
  read: readStream,
  tryPage,
  draftDefinition,
});

/** Reads the first page of the first stream, which exercises URL, credentials, path and selector. */
function check(given: Context): Promise<CheckResult> {
  return withRequests(given, async (ctx) => {
    const api = openApi(ctx, { interactive: true });
    const { streams } = api.definition;
    // A job may take longer than a check.
    const stream = streams.find(({ job }) => !job) ?? streams[0];
    if (stream?.job) return await checkJob(api, stream);
    const records = stream ? await countFirstPage(api, stream) : 0;
    api.guards.finish(ctx);
    return { checks: [{ title: 'First page', status: 'passed', message: `${records} records of ${stream?.name}` }] };
  });
}

/** A job that is not completed within the time of a check exercises all but its results. */
async function checkJob(api: Api, stream: StreamDefinition): Promise<CheckResult> {
  const title = `Job of ${stream.name}`;
  try {
    const records = await countFirstPage(api, stream);
    return { checks: [{ title, status: 'passed', message: `${records} records` }] };
  } catch (error) {
    if (!(error instanceof TimeoutError) || error.code !== 'job_timed_out') throw error;
    return { checks: [{ title, status: 'passed', message: 'It was created, and is still running' }] };
  }
}

async function countFirstPage(api: Api, stream: StreamDefinition): Promise<number> {
  const [slice] = allSlices(api, stream);
  if (!slice) return 0;
  for await (const { records } of readPages(api, stream, slice)) return records.length;
  return 0;
}

function discover(given: Context): Promise<StreamSchema[]> {
  return withRequests(given, async (ctx) => {
    const api = openApi(ctx, { interactive: false });
    const streams: StreamSchema[] = [];
    for (const stream of api.definition.streams) streams.push(await describeStream(api, stream));
    return streams;
  });
}

function tryPage(given: Context, stream_name: string | null): Promise<TriedPage> {
  return withRequests(given, async (ctx) => {
    const api = openApi(ctx, { interactive: true });
    const stream = streamOf(api, stream_name ?? api.definition.streams[0]?.name ?? '');
    const { records, next } = await firstPage(api, stream);
    const { fields } = schemaFrom(stream, records);
    return { records, fields, next: next && { ...next, url: next.url.href } };
  });
}
