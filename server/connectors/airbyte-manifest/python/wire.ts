import { ConfigurationError } from '../../contract/errors.ts';
import type { Scope } from '../interpolation/template.ts';
import type { HttpRequest } from '../../kits/rest/request.ts';

/** A request as components get and return it. */
export interface WireRequest {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string | null;
}

export const wireOf = ({ method, url, headers, body }: HttpRequest): WireRequest => ({
  method,
  url: url.href,
  headers,
  body,
});

/** A response as components get it. */
export interface WireResponse {
  status: number;
  headers: Record<string, string>;
  text: string;
  url: string;
}

export function requestOf({ method, url, headers, body }: WireRequest): HttpRequest {
  const parsed = URL.parse(url);
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    throw new ConfigurationError('invalid_address', `Not an http or https URL: ${url.slice(0, 200)}`);
  const lowered = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return { method, url: parsed, headers: Object.fromEntries(lowered) as Record<string, string>, body };
}

/** A slice as custom components see it. */
export interface PythonSlice {
  partition: Record<string, unknown>;
  cursor_slice: Record<string, unknown>;
  extra_fields: Record<string, unknown>;
}

export function pythonSlice({ stream_slice }: Scope): PythonSlice {
  const { partition = {}, cursor_slice = {}, extra_fields = {} } = stream_slice as Partial<PythonSlice>;
  return { partition, cursor_slice, extra_fields };
}

/** The slice of a component as templates see it. */
export function sliceOf({ partition, cursor_slice, extra_fields }: PythonSlice): Scope {
  const slice = { ...partition, ...cursor_slice };
  for (const [name, value] of Object.entries({ partition, cursor_slice, extra_fields })) {
    if (!Object.hasOwn(slice, name)) Object.defineProperty(slice, name, { value, enumerable: false });
  }
  return { stream_slice: slice, stream_interval: slice, stream_partition: slice };
}
