import type { Deps } from '../../deps.ts';
import { periodic } from '../../platform/periodic.ts';
import { metricsResponse } from './metrics-response.ts';

const RETRY_MS = 5_000;

/**
 * Serves the metrics of a worker on METRICS_PORT, if there is one, and `/healthz` for probes. While another process has
 * the port, such as the predecessor of this worker, it is tried again: a worker works without it.
 */
export function serveMetrics(deps: Deps): { port(): number | null; stop(): Promise<void> } {
  const { HOST: hostname, METRICS_PORT: port } = deps.config;
  if (port === null) return { port: () => null, stop: async () => {} };
  let server: Bun.Server<undefined> | null = null;
  const fetch = (request: Request) => {
    const { pathname } = new URL(request.url);
    if (pathname === '/metrics') return metricsResponse(deps, request);
    if (pathname === '/healthz') return Response.json({ status: 'ok' });
    return Response.json({ detail: 'Not Found', code: 'not_found' }, { status: 404 });
  };
  const listening = periodic(
    async () => {
      server ??= Bun.serve({ hostname, port, fetch });
    },
    {
      every_ms: RETRY_MS,
      immediately: true,
      onError: (error) => deps.log.warn({ err: error, port }, 'METRICS_PORT cannot be opened. Trying again'),
    },
  );
  return {
    port: () => server?.port ?? null,
    async stop() {
      await listening.stop();
      await server?.stop(true);
    },
  };
}
