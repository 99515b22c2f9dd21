export const BASE_PATH = '/tools/pipelines';

/**
 * A reverse proxy on a free port that serves `upstream()` below BASE_PATH and nothing elsewhere. It passes the base path
 * on, or removes it.
 */
export function startPathProxy(upstream: () => string, { removes }: { removes: boolean }) {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      if (!`${pathname}/`.startsWith(`${BASE_PATH}/`)) return new Response('Another application', { status: 404 });
      const path = removes ? pathname.slice(BASE_PATH.length) || '/' : pathname;
      const { method, headers, body, signal } = request;
      // Bodies pass as they are, encoded or not.
      return fetch(upstream() + path + search, {
        method,
        headers,
        body,
        signal,
        redirect: 'manual',
        decompress: false,
      });
    },
  });
  const origin = `http://127.0.0.1:${server.port}`;
  return { origin, url: origin + BASE_PATH, close: () => server.stop(true) };
}
