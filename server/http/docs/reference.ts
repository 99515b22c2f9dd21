import { ApiError } from '../../platform/errors.ts';
import type { Config } from '../../platform/config.ts';
import type { Handler } from '../edge.ts';
import { below } from './render.ts';

/** Only files of this service. Swagger UI sets inline styles. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Data pipelines: API reference</title>
<link rel="stylesheet" href="/docs/api/swagger-ui.css">
<link rel="icon" href="/docs/api/favicon-32x32.png">
</head>
<body>
<div id="reference"></div>
<script src="/docs/api/swagger-ui-bundle.js"></script>
<script src="/docs/api/start.js"></script>
</body>
</html>
`;

const START = `SwaggerUIBundle({
  url: new URL('../../openapi.json', document.currentScript.src).href,
  dom_id: '#reference',
  deepLinking: true,
  persistAuthorization: false,
  validatorUrl: null,
});
`;

const FROM_PACKAGE: Record<string, string> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
};

/** The API reference, rendered from /openapi.json. */
export const referencePage =
  ({ BASE_PATH }: Pick<Config, 'BASE_PATH'>): Handler =>
  () =>
    page(below(BASE_PATH, PAGE), 'text/html; charset=utf-8');

/** The scripts and styles of the API reference, from the npm package. */
export const referenceFile: Handler = ({ params: [name = ''] }) => {
  if (name === 'start.js') return page(START, 'text/javascript; charset=utf-8');
  const type = Object.hasOwn(FROM_PACKAGE, name) ? FROM_PACKAGE[name] : undefined;
  if (!type) throw new ApiError(404, 'not_found', 'Not Found');
  const file = Bun.file(new URL(import.meta.resolve(`swagger-ui-dist/${name}`)));
  return new Response(file, { headers: { 'content-type': type, 'cache-control': 'public, max-age=3600' } });
};

const page = (text: string, type: string) =>
  new Response(text, { headers: { 'content-type': type, 'content-security-policy': POLICY } });
