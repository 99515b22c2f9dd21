import { ConfigurationError } from '../../contract/errors.ts';
import type { HttpRequester, RequestOption } from '../components/request-components.ts';
import { setAtPath } from '../interpolation/dpath.ts';
import { pyText } from '../interpolation/python-literal.ts';
import { type Interpolation, isTemplate, type Scope, type Templates } from '../interpolation/template.ts';
import { isMapping } from '../interpolation/values.ts';
import { formText } from './form.ts';
import type { HttpRequest } from '../../kits/rest/request.ts';

/** A value that a paginator, cursor or partition router injects into a request. */
export interface Injection {
  option: RequestOption;
  value: unknown;
}

export interface PageRequest extends Interpolation {
  requester: HttpRequester;
  injections: readonly Injection[];
  /** The path or URL of the next page, which replaces that of the requester; null: that of the requester. */
  address: string | null;
  /** Origins that the URL of a next page may have. Those of the manifest are added here. */
  origins: Set<string>;
}

/** The request for one page. @throws ConfigurationError when the URL is invalid or has a foreign origin */
export function buildRequest(page: PageRequest): HttpRequest {
  const { requester, templates, scope } = page;
  const url = urlOf(page);
  const headers: Record<string, string> = { accept: 'application/json' };
  for (const [name, value] of entriesOf(page, requester.request_headers)) headers[name.toLowerCase()] = pyText(value);
  const query = entriesOf(page, requester.request_parameters);
  const inBody: Injection[] = [];
  for (const injection of page.injections) {
    const { inject_into } = injection.option;
    const name = templates.text(injection.option.field_name ?? injection.option.field_path?.[0] ?? '', scope) ?? '';
    if (inject_into === 'header') headers[name.toLowerCase()] = pyText(injection.value);
    else if (inject_into === 'request_parameter') query.push([name, injection.value]);
    else inBody.push(injection);
  }
  const known = new Set(url.searchParams.keys());
  for (const [name, value] of query) {
    // The URL of a next page has them already.
    if (!known.has(name)) for (const one of [value].flat()) url.searchParams.append(name, pyText(one));
  }
  const body = bodyOf(page, inBody);
  if (body) headers['content-type'] ??= body.type;
  return { method: requester.http_method, url, headers, body: body?.text ?? null };
}

function urlOf({ requester, templates, scope, address, origins }: PageRequest): URL {
  const given = templates.text(requester.url_base || requester.url || '', scope) ?? '';
  const path = address ?? templates.text(requester.path ?? '', scope) ?? '';
  const base = given === '' ? path : given;
  const root = URL.parse(base);
  if (!root || !/^https?:$/.test(root.protocol)) {
    throw new ConfigurationError(
      'invalid_address',
      `The URL of the manifest is not an http or https URL: "${base.slice(0, 200)}"`,
    );
  }
  origins.add(root.origin);
  // The path of a manifest is below the base, whereas a next page is relative to it.
  const isAbsolute = /^https?:\/\//i.test(path);
  const isBelow = address === null && !isAbsolute;
  const whole = isBelow
    ? URL.parse(joined(base, path))
    : URL.parse(isAbsolute ? path : withSingleSlashes(path), base.endsWith('/') ? base : `${base}/`);
  if (!whole) throw new ConfigurationError('invalid_address', `Not a valid URL: ${path.slice(0, 200)}`);
  if (origins.has(whole.origin)) return whole;
  throw new ConfigurationError(
    'foreign_address',
    `The next page is on ${whole.host}, which is not a host of the manifest. It would receive the credentials.`,
  );
}

/** Joined with one slash, as by Airbyte. An empty path leaves the base unchanged. */
const joined = (base: string, path: string) => {
  const below = path.replace(/^\/+/, '');
  return below === '' ? base : withSingleSlashes(`${base.replace(/\/+$/, '')}/${below}`);
};

/** Python's `urljoin` leaves out the empty parts of a path. */
const withSingleSlashes = (address: string) =>
  address.replace(/^(https?:\/\/)?([^?#]*)/i, (_, scheme = '', path: string) => scheme + path.replace(/\/{2,}/g, '/'));

/** Evaluated entries, without those that have no value. */
function entriesOf(
  { templates, scope }: Interpolation,
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

/** Lists stay lists. A plain text stays the text, so that `1.10` does not become `1.1`. */
function shown(templates: Templates, part: unknown, scope: Scope): unknown {
  if (typeof part !== 'string') return templates.nested(part, scope) ?? null;
  const value = templates.value(part, scope);
  if (typeof value === 'number' && !isTemplate(part)) return templates.text(part, scope);
  return value;
}

function bodyOf(page: PageRequest, injections: readonly Injection[]): { type: string; text: string } | null {
  const { requester, templates, scope } = page;
  const { request_body: body } = requester;
  const isForm = body?.type === 'RequestBodyUrlEncodedForm';
  const plain = body?.type === 'RequestBodyPlainText' ? body.value : requester.request_body_data;
  if (typeof plain === 'string' && injections.length === 0) {
    const text = templates.text(plain, scope);
    return text === null ? null : { type: 'text/plain', text };
  }
  const data = Object.fromEntries(entriesOf(page, (isForm ? body.value : requester.request_body_data) as never));
  const source = body && !isForm ? body.value : requester.request_body_json;
  const found = source === null || source === undefined ? {} : templates.nested(source, scope);
  const json = isMapping(found) ? copied(found) : found;
  for (const { option, value } of injections) {
    const path = (option.field_path ?? [option.field_name ?? '']).map((part) => templates.text(part, scope) ?? part);
    setAtPath(option.inject_into === 'body_data' ? data : (json as Record<string, unknown>), path, value);
  }
  if (Object.keys(data).length > 0) return { type: 'application/x-www-form-urlencoded', text: formText(data) };
  if (!isMapping(json)) return { type: 'application/json', text: JSON.stringify(json) };
  return Object.keys(json).length > 0 ? { type: 'application/json', text: JSON.stringify(json) } : null;
}

/** A copy to inject values into. */
const copied = (value: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(value).map(([name, part]) => [name, isMapping(part) ? copied(part) : part]));
