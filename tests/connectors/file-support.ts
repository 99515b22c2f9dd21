import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type {
  AnyConnector,
  Cell,
  ConnectorContext,
  RequestRecord,
  ResponseRecord,
  StreamState,
  SyncMode,
} from '../../server/connectors/contract/connector.ts';
import { fileDestination } from '../../server/connectors/file/destination.ts';
import type { FileSourceConfig } from '../../server/connectors/kits/files/settings/files.ts';
import { fileSource } from '../../server/connectors/file/source.ts';
import { recordingFetch } from '../../server/connector-runtime/recording-fetch.ts';
import { readBatches, requestOf } from './reading.ts';
import { contextOf } from './places.ts';

export interface Recorded {
  request: RequestRecord;
  response: ResponseRecord | null;
}

/** A context like the engine's: fetch is recorded and reaches loopback only if it is allowed. */
export function remoteContext(
  settings: object,
  more: { destination?: boolean; allow?: string[]; signal?: AbortSignal } = {},
) {
  const filesRoot = mkdtempSync(join(tmpdir(), 'data-pipelines-remote-'));
  const connector: AnyConnector = more.destination ? fileDestination : fileSource;
  const base = contextOf(connector, { filesRoot }, { settings, signal: more.signal });
  const recorded: Recorded[] = [];
  const recorder = {
    start(request: RequestRecord) {
      const entry: Recorded = { request, response: null };
      recorded.push(entry);
      return { done: (response: ResponseRecord) => void (entry.response = response), failed() {} };
    },
  };
  const rules = { allow: more.allow ?? ['127.0.0.0/8:*'], http: true };
  const allow = rules.allow.flatMap((entry) =>
    entry.endsWith(':*') ? portsOf(settings, entry.slice(0, -2)) : [entry],
  );
  const fetch = recordingFetch(recorder, base.signal, { ...rules, allow });
  const ctx = { ...base, fetch, recorder } as ConnectorContext<FileSourceConfig>;
  return { ctx, recorded, filesRoot, cleanUp: () => rmSync(filesRoot, { recursive: true, force: true }) };
}

/** Host and port of every address in the settings. */
function portsOf(settings: object, network: string): string[] {
  const urls = JSON.stringify(settings).match(/http:\/\/[^/"]+/g) ?? [];
  return [...new Set(urls.map((url) => new URL(url).port || '80'))].map((port) => `${network}:${port}`);
}

export type SourceTestContext = ConnectorContext<FileSourceConfig>;

export async function readFiles(
  ctx: SourceTestContext,
  more: { sync_mode?: SyncMode; state?: StreamState | null } = {},
): Promise<{ rows: Cell[][]; state: StreamState | null }> {
  const [stream] = await fileSource.discover(ctx);
  if (!stream) throw new Error('no stream');
  const batches = await readBatches(fileSource, ctx, requestOf(stream, more));
  return {
    rows: batches.flatMap(({ rows }) => rows),
    state: JSON.parse(JSON.stringify(batches.findLast(({ state }) => state)?.state ?? more.state ?? null)),
  };
}
