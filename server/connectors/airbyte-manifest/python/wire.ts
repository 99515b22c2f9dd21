import { ConfigurationError } from '../../contract/errors.ts';
import type { HttpRequest } from '../../kits/rest/send.ts';
import type { Scope } from '../interpolation/template.ts';

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

/** The slice as custom components see it. */
export function pythonSlice({ stream_slice }: Scope): Record<string, unknown> {
  const slice = stream_slice as { partition?: unknown; cursor_slice?: unknown; extra_fields?: unknown };
  const { partition = {}, cursor_slice = {}, extra_fields = {} } = slice;
  return { partition, cursor_slice, extra_fields };
}
