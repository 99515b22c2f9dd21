import { CONSOLE_HEADERS } from '../../session.ts';
import { BASE_PATH } from '../../base-path.ts';

/** One recorded and redacted request of a connector. */
export interface LogEntry {
  id: string;
  timestamp: string;
  stream_name: string;
  connector_type: 'source' | 'destination';
  sequence: number;
  attempt: number;
  request: LoggedMessage & { method: string; url: string; query: Record<string, unknown> };
  response: (LoggedMessage & { status: number }) | null;
  duration_ms: number;
  timings: Record<string, number | null> | null;
  rate_limited: boolean;
  error: { code: string; message: string } | null;
  /** Number of redacted secrets. */
  redactions: number;
}

interface LoggedMessage {
  headers: Record<string, string>;
  body: string | null;
  body_bytes: number;
  body_truncated: boolean;
}

/** The page shows at most this many; the download has all. */
export const MAX_ENTRIES = 5_000;

/**
 * Streams the log of one side of a stream run. The log of a whole run cannot be read here: it consists of several gzip
 * members, of which browsers decode only the first.
 */
export async function* readLog(
  key: { connection_id: string; connection_run_id: string; stream_run_id: string; side: 'source' | 'destination' },
  signal: AbortSignal,
): AsyncGenerator<LogEntry> {
  const run = `${BASE_PATH}/connections/${key.connection_id}/runs/${key.connection_run_id}`;
  const response = await fetch(`${run}/stream_runs/${key.stream_run_id}/network_logs?connector_type=${key.side}`, {
    headers: CONSOLE_HEADERS,
    signal,
  });
  if (response.status === 404) return;
  if (!response.ok || !response.body) throw new Error(`Reading the log failed with status ${response.status}`);
  let buffered = '';
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (buffered + value).split('\n');
    buffered = lines.pop() ?? '';
    for (const line of lines) if (line !== '') yield JSON.parse(line) as LogEntry;
  }
  if (buffered !== '') yield JSON.parse(buffered) as LogEntry;
}

export const statusOf = ({ response, error }: LogEntry): string =>
  error ? error.code : response ? String(response.status) : '–';

export const isError = ({ response, error }: LogEntry): boolean => error !== null || (response?.status ?? 0) >= 400;

/** Whether the text occurs in the request, response, error or stream name. */
export function hasText({ request, response, error, stream_name }: LogEntry, text: string): boolean {
  const texts = [request.method, request.url, request.body, response?.body, error?.message, stream_name];
  return texts.some((one) => one?.toLowerCase().includes(text));
}
