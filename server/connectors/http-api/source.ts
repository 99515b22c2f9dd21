import { type CheckResult, defineSource, type StreamSchema } from '../contract/connector.ts';
import { type Context, openApi } from './api.ts';
import { describeStream } from '../kits/rest/columns.ts';
import { readPages, wholeOf } from './pages.ts';
import { readStream } from './read.ts';
import { HttpApiConfig } from './settings.ts';

export const httpApiSource = defineSource<HttpApiConfig>({
  type: 'source',
  name: 'http_api',
  display_name: 'REST API',
  description: 'Records of any JSON API over HTTP, told by a definition in YAML or JSON',
  category: 'http',
  version: '1.0.0',
  release_stage: 'generally_available',
  auth_methods: ['none', 'api_key', 'basic', 'oauth2'],
  supported_sync_modes: ['full_refresh', 'incremental'],
  pushdown: { masking: [], filters: false },
  config: HttpApiConfig,
  check,
  discover,
  read: readStream,
});

/** The first page of the first stream: address, credentials, path and selector are then right. */
async function check(ctx: Context): Promise<CheckResult> {
  const abort = new AbortController();
  const api = openApi({ ...ctx, signal: AbortSignal.any([ctx.signal, abort.signal]) }, { hurry: true });
  const [stream] = api.definition.streams;
  try {
    let records = 0;
    for (const slice of stream ? wholeOf(api, stream) : []) {
      for await (const page of readPages(api, stream!, slice)) {
        records = page.records.length;
        break;
      }
      break;
    }
    return { checks: [{ title: 'First page', status: 'passed', message: `${records} records of ${stream?.name}` }] };
  } finally {
    abort.abort();
  }
}

async function discover(ctx: Context): Promise<StreamSchema[]> {
  const abort = new AbortController();
  const api = openApi({ ...ctx, signal: AbortSignal.any([ctx.signal, abort.signal]) }, { hurry: false });
  try {
    const streams = [];
    for (const stream of api.definition.streams) streams.push(await describeStream(api, stream));
    return streams;
  } finally {
    abort.abort();
  }
}
