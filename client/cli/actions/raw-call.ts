import type { Cli } from '../context.ts';
import { CommandError, type Outcome, UsageError } from '../exit.ts';
import { isData } from '../output.ts';
import { pairOf, readText } from '../read-document.ts';

export interface RawCall {
  json: boolean;
  method?: string;
  field?: readonly string[];
  header?: readonly string[];
  input?: string;
}

const OUTCOMES: Record<number, Outcome> = { 401: 'authentication', 403: 'authentication', 404: 'not_found' };

/** Sends one request to the REST API and prints the response as it is, or the requested part of its JSON. */
export async function rawCall(cli: Cli, flags: RawCall, path: string): Promise<void> {
  if (!path.startsWith('/') || path.startsWith('//'))
    throw new UsageError(`"${path}" is not a path of the service: it begins with one slash, as in /connections`);
  const body = await bodyOf(flags);
  const method = (flags.method ?? (body === null ? 'GET' : 'POST')).toUpperCase();
  const headers = new Headers(body === null ? {} : { 'content-type': 'application/json' });
  for (const header of flags.header ?? []) headers.set(...headerOf(header));
  const answer = await cli.fetch(path, { method, body, headers: Object.fromEntries(headers) });
  const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true;
  if (isJson && answer.ok) showJson(cli, await answer.json());
  else if (isJson) cli.print(JSON.stringify(await answer.json(), null, 2));
  else cli.process.stdout.write(new Uint8Array(await answer.arrayBuffer()));
  if (answer.ok) return;
  const outcome = OUTCOMES[answer.status] ?? (answer.status >= 500 || answer.status === 429 ? 'unavailable' : 'failed');
  const reference = answer.headers.get('x-request-id') ?? 'unknown';
  throw new CommandError(outcome, `HTTP ${answer.status} (request ${reference})`);
}

function showJson(cli: Cli, document: unknown): void {
  if (!isData(cli.output)) cli.output = { format: 'json', jq: null };
  cli.document = document;
}

async function bodyOf({ field, input }: RawCall): Promise<string | null> {
  if (input !== undefined && field) throw new UsageError('Use either --input or --field, not both');
  if (input !== undefined) return readText(input);
  return field ? JSON.stringify(Object.fromEntries(field.map((pair) => pairOf('--field', pair)))) : null;
}

function headerOf(text: string): [name: string, value: string] {
  const at = text.indexOf(':');
  if (at < 1) throw new UsageError(`--header ${text}: expected "Name: value"`);
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}
