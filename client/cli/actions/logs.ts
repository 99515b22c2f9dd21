import type { Cli } from '../context.ts';
import { CommandError, type Outcome } from '../exit.ts';
import type { Style } from '../style.ts';
import { findRun } from './runs.ts';

export interface LogFilter {
  json: boolean;
  side?: 'source' | 'destination';
  stream?: readonly string[];
  status?: readonly string[];
  bodies: boolean;
}

interface Message {
  headers: Record<string, string>;
  body?: unknown;
  body_truncated?: boolean;
}

interface Entry {
  timestamp: string;
  stream_name: string | null;
  connector_type: string;
  attempt: number;
  request: Message & { method: string; url: string };
  response: (Message & { status: number }) | null;
  duration_ms: number;
  rate_limited: boolean;
  error: { code: string; message: string } | null;
  truncated?: boolean;
  dropped?: number;
}

/** Streams the network log line by line, since it may not fit in memory. */
export async function logs(cli: Cli, flags: LogFilter, wanted: string): Promise<void> {
  const { id } = await findRun(await cli.api(), wanted);
  const side = flags.side ? `?connector_type=${flags.side}` : '';
  const answer = await cli.fetch(`/connection_runs/${id}/network_logs${side}`);
  if (!answer.ok || !answer.body) throw await errorOf(answer);
  const matches = filterOf(flags);
  let shown = 0;
  for await (const line of linesOf(answer.body)) {
    const entry = JSON.parse(line) as Entry;
    if (entry.truncated) {
      cli.note(`${entry.dropped} more requests exceeded the size limit and were not stored`);
      continue;
    }
    if (!matches(entry)) continue;
    shown += 1;
    cli.print(flags.json ? line : readable(cli.style, entry, flags.bodies));
  }
  if (shown === 0 && !flags.json) cli.note('No matching log entries');
}

const OUTCOMES: Record<number, Outcome> = { 401: 'authentication', 403: 'authentication', 404: 'not_found' };

async function errorOf(answer: Response): Promise<CommandError> {
  const body = (await answer.json().catch(() => null)) as { detail: string; code: string } | null;
  const message = body ? `${body.detail} (${body.code}, ` : `HTTP ${answer.status} (`;
  const request = `request ${answer.headers.get('x-request-id') ?? 'unknown'})`;
  return new CommandError(OUTCOMES[answer.status] ?? 'unavailable', message + request);
}

/** The download may consist of several gzip members, which DecompressionStream reads as one. */
async function* linesOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  let rest = '';
  for await (const text of body.pipeThrough(new DecompressionStream('gzip')).pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    for (const line of lines) if (line !== '') yield line;
  }
  if (rest !== '') yield rest;
}

function filterOf({ stream, status }: LogFilter): (entry: Entry) => boolean {
  const patterns = status?.map((one) => new RegExp(`^${one.toLowerCase().replaceAll('x', '\\d')}$`));
  const failed = ({ response, error }: Entry) => error !== null || (response?.status ?? 0) >= 400;
  return (entry) => {
    if (stream && !stream.includes(entry.stream_name ?? '')) return false;
    if (!patterns) return true;
    if (status!.includes('error') && failed(entry)) return true;
    return patterns.some((pattern) => pattern.test(String(entry.response?.status ?? '')));
  };
}

function readable(style: Style, entry: Entry, bodies: boolean): string {
  const { request, response, error } = entry;
  const code = response?.status ?? 0;
  const status = style(
    code >= 400 || code === 0 ? 'red' : code >= 300 ? 'yellow' : 'green',
    code === 0 ? '---' : String(code),
  );
  const where = [entry.connector_type, entry.stream_name].filter(Boolean).join(' ');
  const marks = [
    entry.rate_limited && 'rate limited',
    entry.attempt > 1 && `attempt ${entry.attempt}`,
    error && `${error.code}: ${error.message}`,
  ];
  const head = [
    style('dim', entry.timestamp),
    status,
    `${String(entry.duration_ms).padStart(6)} ms`,
    style('dim', where),
    request.method.padEnd(4),
    request.url,
    ...marks.filter(Boolean).map((mark) => style('yellow', String(mark))),
  ].join('  ');
  if (!bodies) return head;
  return [head, ...messageLines(style, '>', request), ...(response ? messageLines(style, '<', response) : [])].join(
    '\n',
  );
}

function messageLines(style: Style, mark: string, { headers, body, body_truncated }: Message): string[] {
  const text = body == null ? '' : typeof body === 'string' ? body : JSON.stringify(body);
  const lines = [
    ...Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`),
    ...(text ? text.split('\n') : []),
  ];
  if (body_truncated) lines.push('… (truncated)');
  return lines.map((line) => `    ${style('dim', mark)} ${line}`);
}
