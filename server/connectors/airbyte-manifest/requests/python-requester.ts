import { ConfigurationError } from '../../contract/errors.ts';
import { pyText } from '../interpolation/python-literal.ts';
import { setAtPath } from '../interpolation/dpath.ts';
import type { Scope } from '../interpolation/template.ts';
import { inPython, type PythonSession } from '../python/session.ts';
import { pythonSlice, requestOf, type WireRequest } from '../python/wire.ts';
import type { Injection, PageRequest } from './build-request.ts';
import { type SeenResponse, pythonResponse } from './error-handling.ts';
import type { HttpRequest } from '../../kits/rest/request.ts';

/** What is added to a request, by place: `{ request_parameter: { page: 2 } }`. */
type Options = Record<Injection['option']['inject_into'], Record<string, unknown>>;

/** Sends the request that a requester in Python builds, and returns the response that it goes on with. */
export async function sendByPython(
  page: PageRequest,
  python: PythonSession | null,
  send: (request: HttpRequest) => Promise<SeenResponse>,
): Promise<SeenResponse> {
  const { requester, scope, address } = page;
  const added = optionsOf(page);
  const options = {
    stream_state: scope.stream_state ?? {},
    next_page_token: scope.next_page_token,
    path: address,
    request_params: added.request_parameter,
    request_headers: added.header,
    request_body_data: added.body_data,
    request_body_json: added.body_json,
  };
  const answers: SeenResponse[] = [];
  const number = await inPython(python).call(requester.python, 'request', [options, pythonSlice(scope)], {
    send: async (wire: WireRequest) => {
      const request = requestOf(wire);
      request.headers = { accept: 'application/json', ...request.headers };
      checkOrigin(page, request.url);
      const seen = await send(request);
      answers.push(seen);
      return { ...pythonResponse(seen.response), number: answers.length - 1 };
    },
  });
  const seen = typeof number === 'number' || typeof number === 'string' ? answers[Number(number)] : answers.at(-1);
  if (!seen) throw new ConfigurationError('no_request', 'The requester of components.py sends no request');
  return number === null ? { ...seen, isIgnored: true } : seen;
}

/** The address of a next page comes from a response, and would receive the credentials. */
function checkOrigin({ address, origins }: PageRequest, { origin, host }: URL): void {
  if (address === null) origins.add(origin);
  if (origins.has(origin)) return;
  throw new ConfigurationError(
    'foreign_address',
    `The next page is on ${host}, which is not a host of the manifest. It would receive the credentials.`,
  );
}

function optionsOf({ injections, templates, scope }: PageRequest): Options {
  const options: Options = { request_parameter: {}, header: {}, body_data: {}, body_json: {} };
  for (const { option, value } of injections) {
    const path = (option.field_path ?? [option.field_name ?? '']).map((part) => templates.text(part, scope) ?? part);
    setAtPath(options[option.inject_into], path, option.inject_into === 'header' ? pyText(value) : value);
  }
  return options;
}

/** What a cursor in Python adds to a request. */
export async function customOptions(
  component: unknown,
  python: PythonSession | null,
  scope: Scope,
): Promise<Injection[]> {
  const args = [pythonSlice(scope), scope.stream_state ?? {}, scope.next_page_token ?? null];
  const found = (await inPython(python).call(component, 'options', args)) as Options;
  return (Object.keys(found) as (keyof Options)[]).flatMap((inject_into) =>
    Object.entries(found[inject_into]).flatMap(([field_name, value]) =>
      value === null ? [] : [{ option: { type: 'RequestOption' as const, inject_into, field_name }, value }],
    ),
  );
}
