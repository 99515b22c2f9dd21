import { CONSOLE_HEADERS } from '../../session.ts';

/** One request of a connector, as the service recorded and redacted it. */
export interface LogEntry {
  id: string;
  timestamp: string;
  stream_name: string;
  connector_type: 'source' | 'destination';
  sequence: number;
  attempt: number;
  request: Message & { method: string; url: string; query: Record<string, unknown> };
  response: (Message & { status: number }) | null;
  duration_ms: number;
  timings: Record<string, number | null> | null;
  rate_limited: boolean;
  error: { code: string; message: string } | null;
  /** How many secrets were taken out. */
  redactions: number;
}

interface Message {
  headers: Record<string, string>;
  body: string | null;
  body_bytes: number;
  body_truncated: boolean;
}

/** The browser keeps so many; the rest is for the download. */
export const MOST_ENTRIES = 5_000;

/**
 * The log of one side of a stream run, line by line as it comes in. By stream run, as the service sends that as one
 * gzip member under Content-Encoding: of the run's file, with its many members, browsers decode the first alone.
 */
export async function* readLog(
  of: { connection_id: string; connection_run_id: string; stream_run_id: string; side: 'source' | 'destination' },
  signal: AbortSignal,
): AsyncGenerator<LogEntry> {
  const path = `/connections/${of.connection_id}/runs/${of.connection_run_id}/stream_runs/${of.stream_run_id}`;
  const answer = await fetch(`${path}/network_logs?connector_type=${of.side}`, { headers: CONSOLE_HEADERS, signal });
  if (answer.status === 404) return;
  if (!answer.ok || !answer.body) throw new Error(`The log cannot be read (${answer.status})`);
  let rest = '';
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') yield JSON.parse(line) as LogEntry;
  }
  if (rest !== '') yield JSON.parse(rest) as LogEntry;
}

export const statusOf = ({ response, error }: LogEntry): string =>
  error ? error.code : response ? String(response.status) : '–';

export const isTrouble = ({ response, error }: LogEntry): boolean => error !== null || (response?.status ?? 0) >= 400;

/** Whether an entry has the text anywhere that people look. */
export function hasText({ request, response, error, stream_name }: LogEntry, text: string): boolean {
  const places = [request.method, request.url, request.body, response?.body, error?.message, stream_name];
  return places.some((place) => place?.toLowerCase().includes(text));
}
