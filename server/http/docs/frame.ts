import type { Config } from '../../platform/config.ts';
import { below, escaped } from './render.ts';

export type Base = Pick<Config, 'BASE_PATH'>;

/** Only styles, pictures and scripts of this service; nothing inline. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

export interface Framed {
  title: string;
  content: string;
  /** HTML of the menu, with its label. */
  menu: { label: string; html: string };
  head?: string;
  /** Whether the content takes the whole width. */
  wide?: boolean;
}

/** A page of the documentation with its head and menu. */
export function framed({ BASE_PATH }: Base, { title, content, menu, head = '', wide = false }: Framed): Response {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)} · Data pipelines</title>
<link rel="icon" href="/docs/assets/icon.svg">
<link rel="stylesheet" href="/docs/assets/style.css">
${head}
</head>
<body>
<header><a href="/docs">Data pipelines documentation</a><a href="/docs/api">API reference</a><a href="/">Console</a></header>
<nav aria-label="${escaped(menu.label)}">${menu.html}</nav>
<main${wide ? ' class="wide"' : ''}>${content}</main>
</body>
</html>
`;
  return new Response(below(BASE_PATH, html), {
    headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': POLICY },
  });
}

/** A menu entry; the current one is marked. */
export const entry = (one: { url: string; title: string }, current?: string): string =>
  `<li><a href="${escaped(one.url)}"${one.url === current ? ' aria-current="page"' : ''}>${escaped(one.title)}</a></li>`;
