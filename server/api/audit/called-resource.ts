import { RequestParts } from '../request-parser.ts';
import { isId } from '../wire-types.ts';
import type { EndpointMeta } from '../endpoint-meta.ts';

/** The ids that a call names: those of its path, or of its input if it has no path. The last one is what it is about. */
export function calledResource(meta: EndpointMeta | undefined, raw: unknown) {
  const input = raw instanceof RequestParts ? raw.params : ((raw ?? {}) as Record<string, unknown>);
  const declared = meta?.endpoint ? Object.keys(meta.endpoint.params.shape) : Object.keys(input);
  const ids = declared.flatMap((name): [string, string][] => {
    const value = input[name];
    return name.endsWith('_id') && typeof value === 'string' && isId(value) ? [[name, value.toLowerCase()]] : [];
  });
  const last = ids.at(-1);
  if (!last) return {};
  const details = ids.length > 1 ? Object.fromEntries(ids) : null;
  return { resource_type: last[0].slice(0, -'_id'.length), resource_id: last[1], details };
}
