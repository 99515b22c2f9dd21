import { Elysia } from 'elysia';
import type { Deps } from '../deps.ts';
import { recordRefusal } from '../api/audit/refusals.ts';
import { avatarPicture } from './avatar.ts';
import { commandLine } from './command-line.ts';
import { consoleRoutes } from './console/routes.ts';
import { docsAsset, docsIndex, docsPage } from './docs/pages.ts';
import { referencePages } from './docs/reference/pages.ts';
import { createEdge, type Handler } from './edge.ts';
import { unauthenticatedCall } from './errors.ts';
import { exportFile } from './exports.ts';
import { alive, ready } from './health.ts';
import { oauthCallback } from './inbound/oauth-callback.ts';
import { openApiDocument } from './openapi.ts';
import { getRoute, otherMethods, type PathRoutes, proceduresOf, restRoutes } from './rest.ts';
import { TRPC_PATH, trpcHandler } from './trpc.ts';
import { ApiError } from '../platform/errors.ts';
import { appRouter, restRouter } from '../router.ts';
import { scimRoutes } from './scim/routes.ts';
import { webhookRoutes } from './inbound/webhooks.ts';
import { ConfigError } from '../platform/config.ts';
import { measureInstallation } from '../worker/metrics/measure-installation.ts';
import { metricsResponse } from '../worker/metrics/metrics-response.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** The whole service on HTTP, not listening yet: `createApp(deps).listen({ hostname, port })`, or `.handle(request)`. */
export function createApp(deps: Deps) {
  const { metrics } = deps;
  metrics.provide('installation', () => measureInstallation(deps));
  const edge = createEdge({
    log: deps.log,
    metrics,
    tracing: deps.tracing,
    proxies: deps.config.TRUSTED_PROXIES,
    public_url: deps.config.PUBLIC_URL,
    refused: (error, exchange, route) => recordRefusal(deps, error, () => unauthenticatedCall(exchange, route)),
  });
  const served = proceduresOf([appRouter, restRouter]);
  const app = new Elysia({ serve: { idleTimeout: 30 } });
  const all = [
    ...restRoutes(deps, served),
    ...Object.entries(pagesOf(deps, served)).map(([pattern, handler]) => getRoute(pattern, handler)),
    ...consoleRoutes(deps),
    webhookRoutes(deps),
    ...scimRoutes(deps),
  ];
  const { BASE_PATH } = deps.config;
  refuseAmbiguous(BASE_PATH, all);
  // Twice: proxies pass the base path on or remove it, and probes come without it.
  const bases = new Set(['', BASE_PATH]);
  for (const routes of all) {
    const other = edge(routes.template, otherMethods(routes));
    // Each method by itself: a path without parameters must not fall through to one with, whatever the method.
    for (const method of METHODS) {
      const handler = routes.handlers.get(method === 'HEAD' ? 'GET' : method);
      const handled = handler ? edge(routes.template, handler) : other;
      for (const base of bases) app.route(method, base + routes.pattern, handled, { parse: 'none' });
    }
    for (const base of bases) app.all(base + routes.pattern, other, { parse: 'none' });
  }
  const calls = edge(TRPC_PATH, trpcHandler(deps));
  for (const base of bases) app.all(`${base}${TRPC_PATH}/*`, calls, { parse: 'none' });
  const unknown = edge('unknown', () => {
    throw new ApiError(404, 'not_found', 'Not Found');
  });
  const broken = (error: unknown) =>
    edge('unknown', () => {
      throw error;
    });
  return app.onError(({ code, error, request }) =>
    code === 'NOT_FOUND' ? unknown({ request }) : broken(error)({ request }),
  );
}

/** Behind a proxy that removes it, such a base path could not be told from a path of the service. @throws ConfigError */
function refuseAmbiguous(base: string, all: readonly PathRoutes[]): void {
  const first = base.split('/')[1];
  const taken = first && [...all.map(({ pattern }) => pattern), TRPC_PATH].some((path) => path.split('/')[1] === first);
  if (taken) throw new ConfigError(`BASE_PATH must not begin with /${first}, which is a path of the service`);
}

/** What is served beside the procedures and the console, by path. */
function pagesOf(deps: Deps, served: ReturnType<typeof proceduresOf>): Record<string, Handler> {
  let document: ReturnType<typeof openApiDocument> | undefined;
  const documentOf = () => (document ??= openApiDocument(served, deps.config.BASE_PATH));
  const reference = referencePages(deps.config, documentOf, served);
  let text: string | undefined;
  return {
    '/openapi.json': () => jsonText((text ??= JSON.stringify(documentOf()))),
    '/cli': commandLine,
    '/docs': docsIndex(deps.config),
    '/docs/:p1': docsPage(deps.config),
    '/docs/:p1/:p2': docsPage(deps.config),
    '/docs/api': reference.overview,
    '/docs/api/:p1': reference.group,
    '/docs/assets/:p1': docsAsset,
    '/avatars/:p1': avatarPicture(deps),
    '/exports/:p1': exportFile(deps),
    '/oauth/callback': oauthCallback(deps),
    '/healthz': alive,
    '/readyz': ready(deps),
    '/metrics': ({ request }) => metricsResponse(deps, request),
  };
}

const jsonText = (text: string) => new Response(text, { headers: { 'content-type': 'application/json' } });
