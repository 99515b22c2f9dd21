import { ConfigurationError } from '../../contract/errors.ts';
import type { Call } from '../../kits/rest/send.ts';
import type { HttpRequester, RequestOption } from '../components/request-components.ts';
import { setAtPath } from '../extractors/paths.ts';
import { pyText } from '../interpolation/python-literal.ts';
import { formText } from '../auth/signers.ts';
import { isTemplate, type Scope, type Templates } from '../interpolation/template.ts';
import { isMapping } from '../interpolation/values.ts';

/** A value that a paginator, a cursor or a router puts into a request. */
export interface Injection {
  option: RequestOption;
  value: unknown;
}

export interface Asking {
  requester: HttpRequester;
  templates: Templates;
  scope: Scope;
  injections: readonly Injection[];
  /** The path or address of the next page, in the place of the requester's. */
  address: string | null;
  /** Origins that an address of the service may lead to; those of the manifest are added here. */
  origins: Set<string>;
}

/** The request of one page. @throws ConfigurationError when there is no address, or a foreign one */
export function buildCall(asking: Asking): Call {
  const { requester, templates, scope } = asking;
  const url = addressOf(asking);
  const headers: Record<string, string> = { accept: 'application/json' };
  for (const [name, value] of entriesOf(asking, requester.request_headers)) headers[name.toLowerCase()] = pyText(value);
  const query = entriesOf(asking, requester.request_parameters);
  const inBody: Injection[] = [];
  for (const injection of asking.injections) {
    const { inject_into } = injection.option;
    const name = templates.text(injection.option.field_name ?? injection.option.field_path?.[0] ?? '', scope) ?? '';
    if (inject_into === 'header') headers[name.toLowerCase()] = pyText(injection.value);
    else if (inject_into === 'request_parameter') query.push([name, injection.value]);
    else inBody.push(injection);
  }
  const known = new Set(url.searchParams.keys());
  for (const [name, value] of query) {
    // The address of a next page has them already.
    if (!known.has(name)) for (const one of [value].flat()) url.searchParams.append(name, pyText(one));
  }
  const body = bodyOf(asking, inBody);
  if (body) headers['content-type'] ??= body.type;
  return { method: requester.http_method, url, headers, body: body?.text ?? null };
}

function addressOf({ requester, templates, scope, address, origins }: Asking): URL {
  const base = templates.text(requester.url_base || requester.url || '', scope) ?? '';
  const root = URL.parse(base);
  if (!root || !/^https?:$/.test(root.protocol)) {
    throw new ConfigurationError('invalid_address', `The manifest gives no http address: "${base.slice(0, 200)}"`);
  }
  origins.add(root.origin);
  const path = address ?? templates.text(requester.path ?? '', scope) ?? '';
  const whole = /^https?:\/\//i.test(path) ? URL.parse(path) : URL.parse(joined(base, path));
  if (!whole) throw new ConfigurationError('invalid_address', `This is no address: ${path.slice(0, 200)}`);
  if (origins.has(whole.origin)) return whole;
  throw new ConfigurationError(
    'foreign_address',
    `The next page is at ${whole.host}, where the credentials do not belong`,
  );
}

/** One slash between the two; a base without a path stays as it is. */
const joined = (base: string, path: string) =>
  path === '' ? base : `${base.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`;

/** Entries with their values worked out, those that come to nothing left out. */
function entriesOf(
  { templates, scope }: Asking,
  entries: HttpRequester['request_headers'],
): [name: string, value: unknown][] {
  if (!entries) return [];
  if (typeof entries === 'string') {
    const value = templates.value(entries, scope);
    if (isMapping(value)) return Object.entries(value);
    return [...new URLSearchParams(value === null ? '' : pyText(value))];
  }
  return Object.entries(entries).flatMap(([name, part]): [string, unknown][] => {
    const value = shown(templates, part, scope);
    return value === null ? [] : [[templates.text(name, scope) ?? name, value]];
  });
}

/** Lists stay lists; any other value is its text, so that `1.10` does not become `1.1`. */
function shown(templates: Templates, part: unknown, scope: Scope): unknown {
  if (typeof part !== 'string') return templates.nested(part, scope) ?? null;
  const value = templates.value(part, scope);
  if (typeof value === 'number' && !isTemplate(part)) return templates.text(part, scope);
  return value;
}

function bodyOf(asking: Asking, injections: readonly Injection[]): { type: string; text: string } | null {
  const { requester, templates, scope } = asking;
  const { request_body: body } = requester;
  const isForm = body?.type === 'RequestBodyUrlEncodedForm';
  const plain = body?.type === 'RequestBodyPlainText' ? body.value : requester.request_body_data;
  if (typeof plain === 'string' && injections.length === 0) {
    const text = templates.text(plain, scope);
    return text === null ? null : { type: 'text/plain', text };
  }
  const data = Object.fromEntries(entriesOf(asking, (isForm ? body.value : requester.request_body_data) as never));
  const source = body && !isForm ? body.value : requester.request_body_json;
  const found = source === null || source === undefined ? {} : templates.nested(source, scope);
  const json = isMapping(found) ? structured(found) : found;
  for (const { option, value } of injections) {
    const path = (option.field_path ?? [option.field_name ?? '']).map((part) => templates.text(part, scope) ?? part);
    setAtPath(option.inject_into === 'body_data' ? data : (json as Record<string, unknown>), path, value);
  }
  if (Object.keys(data).length > 0) return { type: 'application/x-www-form-urlencoded', text: formText(data) };
  if (!isMapping(json)) return { type: 'application/json', text: JSON.stringify(json) };
  return Object.keys(json).length > 0 ? { type: 'application/json', text: JSON.stringify(json) } : null;
}

/** A copy that values can be put into. */
const structured = (value: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(value).map(([name, part]) => [name, isMapping(part) ? structured(part) : part]));
