import { Elysia } from 'elysia';
import type { Deps } from '../deps.ts';
import { recordRefusal } from '../api/audit/refusals.ts';
import { avatarPicture } from './avatar.ts';
import { commandLine } from './command-line.ts';
import { consoleRoutes } from './console.ts';
import { docsAsset, docsIndex, docsPage } from './docs/pages.ts';
import { referenceFile, referencePage } from './docs/reference.ts';
import { createEdge, type Handler } from './edge.ts';
import { unauthenticatedCall } from './errors.ts';
import { exportFile } from './exports.ts';
import { alive, ready } from './health.ts';
import { oauthCallback } from './inbound/oauth-callback.ts';
import { openApiDocument } from './openapi.ts';
import { otherMethods, type PathRoutes, proceduresOf, restRoutes } from './rest.ts';
import { TRPC_PATH, trpcHandler } from './trpc.ts';
import { ApiError } from '../platform/errors.ts';
import { appRouter, restRouter } from '../router.ts';
import { webhookRoutes } from './inbound/webhooks.ts';
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
    refused: (error, exchange, route) => recordRefusal(deps, error, unauthenticatedCall(exchange, route)),
  });
  const served = proceduresOf([appRouter, restRouter]);
  const app = new Elysia({ serve: { idleTimeout: 30 } });
  for (const routes of [
    ...restRoutes(deps, served),
    ...Object.entries(pagesOf(deps, served)).map(pageRoutes),
    ...consoleRoutes(deps),
    webhookRoutes(deps),
  ]) {
    const other = edge(routes.template, otherMethods(routes));
    // Each method by itself: a path without parameters must not fall through to one with, whatever the method.
    for (const method of METHODS) {
      const handler = routes.handlers.get(method === 'HEAD' ? 'GET' : method);
      app.route(method, routes.pattern, handler ? edge(routes.template, handler) : other, { parse: 'none' });
    }
    app.all(routes.pattern, other, { parse: 'none' });
  }
  app.all(`${TRPC_PATH}/*`, edge(TRPC_PATH, trpcHandler(deps)), { parse: 'none' });
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

/** What is served beside the procedures and the console, by path. */
function pagesOf(deps: Deps, served: ReturnType<typeof proceduresOf>): Record<string, Handler> {
  let document: string | undefined;
  return {
    '/openapi.json': () => jsonText((document ??= JSON.stringify(openApiDocument(served)))),
    '/cli': commandLine,
    '/docs': docsIndex,
    '/docs/:p1': docsPage,
    '/docs/:p1/:p2': docsPage,
    '/docs/api': referencePage,
    '/docs/api/:p1': referenceFile,
    '/docs/assets/:p1': docsAsset,
    '/avatars/:p1': avatarPicture(deps),
    '/exports/:p1': exportFile(deps),
    '/oauth/callback': oauthCallback(deps),
    '/healthz': alive,
    '/readyz': ready(deps),
    '/metrics': ({ request }) => metricsResponse(deps, request),
  };
}

const pageRoutes = ([pattern, handler]: [string, Handler]): PathRoutes => ({
  pattern,
  template: pattern,
  handlers: new Map([['GET', handler]]),
});

const jsonText = (text: string) => new Response(text, { headers: { 'content-type': 'application/json' } });
