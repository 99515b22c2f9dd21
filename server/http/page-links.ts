import { routePath } from '../platform/base-path.ts';
import type { Config } from '../platform/config.ts';
import type { Endpoint } from '../api/endpoint-meta.ts';
import type { HttpExchange } from './exchange.ts';

/**
 * The header Link of a page: `next` while more items match, `prev` unless it is the first. Lists that follow a cursor
 * lead to the items after their last one. Null for other responses.
 */
export function pageLinks(
  config: Pick<Config, 'BASE_PATH'>,
  { request, headers }: HttpExchange,
  { endpoint, data }: { endpoint: Endpoint; data: unknown },
): string | null {
  if (!('offset' in endpoint.query.shape) || !Array.isArray(data)) return null;
  const url = new URL(request.url);
  const path = config.BASE_PATH + routePath(config, request.url);
  const to = (rel: string, changes: Record<string, string>) => {
    const query = new URLSearchParams(url.searchParams);
    for (const [name, value] of Object.entries(changes)) query.set(name, value);
    return `<${path}?${query.toString()}>; rel="${rel}"`;
  };
  const last = (data.at(-1) as { id?: string } | undefined)?.id;
  if (url.searchParams.has('after')) return last === undefined ? null : to('next', { after: last });
  const offset = Number(url.searchParams.get('offset') ?? 0);
  const next = offset + data.length;
  const limit = url.searchParams.get('limit') ?? String(data.length);
  const more = data.length > 0 && next < Number(headers.get('x-total-count'));
  const links = [
    ...(more ? [to('next', { offset: String(next) })] : []),
    ...(offset > 0 ? [to('prev', { offset: String(Math.max(0, offset - Number(limit))) })] : []),
  ];
  return links.length > 0 ? links.join(', ') : null;
}
