import { timingSafeEqual } from 'node:crypto';
import type { Deps } from '../../deps.ts';

/** The answer to a scrape. With METRICS_TOKEN it needs that token; without it no name of a connection is shown. */
export async function metricsResponse({ config, metrics }: Deps, request: Request): Promise<Response> {
  if (config.METRICS_TOKEN !== null && !isAllowed(request, config.METRICS_TOKEN)) {
    const body = { detail: 'Metrics need the header Authorization: Bearer <METRICS_TOKEN>', code: 'not_authenticated' };
    return Response.json(body, { status: 401, headers: { 'www-authenticate': 'Bearer' } });
  }
  return new Response(await metrics.text(), { headers: { 'content-type': 'text/plain; version=0.0.4' } });
}

function isAllowed(request: Request, token: string): boolean {
  const given = Buffer.from(request.headers.get('authorization') ?? '');
  const wanted = Buffer.from(`Bearer ${token}`);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}
