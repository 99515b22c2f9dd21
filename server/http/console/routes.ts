import type { Deps } from '../../deps.ts';
import { ApiError } from '../../platform/errors.ts';
import type { ConsoleBundle } from './build.ts';
import { loadConsole } from './bundle.ts';
import type { Handler } from '../edge.ts';
import { getRoute, type PathRoutes } from '../rest.ts';
import { completeProviderSignIn, listProviders, startProviderSignIn } from '../provider-sign-in.ts';
import { signIn, signOut } from '../session.ts';

/** Files of this service only: no inline scripts or styles, no framing. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

/**
 * Where the console's pages are: links in messages lead to `/cases/{id}` and `/invitation`. The interface has its paths
 * at the root, so all other pages are below `/console`.
 */
const PAGES = ['/', '/console', '/console/*', '/cases/:p1', '/invitation'];

/** The web console: its pages, its files, and signing in and out. */
export function consoleRoutes(deps: Deps): PathRoutes[] {
  const page: Handler = async () =>
    new Response(pageOf((await bundleOf(deps)).entry, deps.config), { headers: PAGE_HEADERS });
  const session = new Map<string, Handler>([
    ['POST', signIn(deps)],
    ['DELETE', signOut(deps)],
  ]);
  return [
    ...PAGES.map((pattern) => getRoute(pattern, page)),
    getRoute('/assets/:p1', asset(deps)),
    getRoute('/console/providers', listProviders(deps)),
    getRoute('/console/sign-in/:p1', startProviderSignIn(deps)),
    getRoute('/console/sign-in/:p1/callback', completeProviderSignIn(deps)),
    { pattern: '/console/session', template: '/console/session', handlers: session },
  ];
}

/** Starts bundling the console before the first request. */
export const warmConsole = (deps: Deps): void =>
  void bundleOf(deps).catch((error: unknown) => deps.log.error({ err: error }, 'the console cannot be bundled'));

const bundles = new WeakMap<Deps, Promise<ConsoleBundle>>();

/** Loaded once. After a failure, the next request tries again. */
function bundleOf(deps: Deps): Promise<ConsoleBundle> {
  const loading = bundles.get(deps) ?? loadConsole(deps);
  bundles.set(deps, loading);
  loading.catch(() => bundles.delete(deps));
  return loading;
}

/** Names contain a hash of the content, so browsers cache the files forever. */
const asset =
  (deps: Deps): Handler =>
  async ({ request, params: [name = ''] }) => {
    const found = (await bundleOf(deps)).assets.get(name);
    if (!found) throw new ApiError(404, 'not_found', 'Not Found');
    const accepted = request.headers.get('accept-encoding') ?? '';
    const encoding = /\bbr\b/.test(accepted) ? 'br' : /\bgzip\b/.test(accepted) ? 'gzip' : null;
    return new Response(found[encoding ?? 'plain'], {
      headers: {
        'content-type': found.type,
        'cache-control': 'public, max-age=31536000, immutable',
        vary: 'accept-encoding',
        ...(encoding && { 'content-encoding': encoding }),
      },
    });
  };

const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': POLICY,
  'cache-control': 'no-cache',
  'cross-origin-opener-policy': 'same-origin',
};

const pageOf = ({ script, style, scheme }: ConsoleBundle['entry'], { BASE_PATH }: Deps['config']) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="base-path" content="${BASE_PATH}">
<title>Data pipelines</title>
<link rel="icon" href="data:,">
<script src="${BASE_PATH}/assets/${scheme}"></script>
<link rel="stylesheet" href="${BASE_PATH}/assets/${style}">
<script type="module" src="${BASE_PATH}/assets/${script}"></script>
</head>
<body>
<div id="console"></div>
<noscript>The console needs JavaScript. The API offers the same functions: see /docs.</noscript>
</body>
</html>
`;
