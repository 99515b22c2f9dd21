import { join } from 'node:path';
import { ApiError } from '../../platform/errors.ts';
import type { Handler } from '../edge.ts';
import { ROOT, type Section, type ServedDocument, servedDocuments } from './documents.ts';
import { type Base, entry, framed } from './frame.ts';
import { escaped, PICTURES, renderDocument } from './render.ts';

const SECTIONS: Section[] = ['Guides', 'Operations', 'Connectors', 'Inside the service', 'Decisions'];

/** `/docs` was the API reference, whose links to operations are fragments, which never reach the server. */
const FORWARD = `if (location.hash.startsWith('#/')) location.replace('docs/api' + location.hash);\n`;

const file = (name: string) => () => Bun.file(join(import.meta.dir, name));

const ASSETS: Record<string, { type: string; body: () => Blob | string }> = {
  'style.css': { type: 'text/css; charset=utf-8', body: file('style.css') },
  'icon.svg': { type: 'image/svg+xml', body: file('icon.svg') },
  'reference.css': { type: 'text/css; charset=utf-8', body: file('reference/reference.css') },
  'reference.js': { type: 'text/javascript; charset=utf-8', body: file('reference/reference.js') },
  'forward.js': { type: 'text/javascript; charset=utf-8', body: () => FORWARD },
  ...Object.fromEntries(
    Object.entries(PICTURES).map(([picture, url]) => [
      url.split('/').at(-1)!,
      { type: 'image/png', body: () => Bun.file(join(ROOT, picture)) },
    ]),
  ),
};

/** All guides, connectors and other documents, and the API reference. */
export const docsIndex =
  (config: Base): Handler =>
  async () => {
    const all = await servedDocuments();
    const lists = SECTIONS.map((section) => {
      const pages = all.filter((one) => one.section === section);
      return pages.length === 0
        ? ''
        : `<h2>${escaped(section)}</h2>\n<ul class="index">${pages.map(indexItem).join('')}</ul>`;
    });
    const reference =
      '<li><a href="/docs/api">API reference</a><span>Every operation, with code for curl, TypeScript and Python.</span></li>';
    const content = `<h1>Documentation</h1>\n<ul class="index">${reference}</ul>\n${lists.join('\n')}`;
    return pageOf(config, {
      title: 'Documentation',
      content,
      all,
      head: '<script src="/docs/assets/forward.js"></script>',
    });
  };

/** One document, by the rest of its path. */
export const docsPage =
  (config: Base): Handler =>
  async ({ params }) => {
    const all = await servedDocuments();
    const document = all.find(({ url }) => url === `/docs/${params.join('/')}`);
    if (!document) throw new ApiError(404, 'not_found', 'Not Found');
    return pageOf(config, { title: document.title, content: renderDocument(document, all), all, url: document.url });
  };

export const docsAsset: Handler = ({ params: [name = ''] }) => {
  const asset = Object.hasOwn(ASSETS, name) ? ASSETS[name] : undefined;
  if (!asset) throw new ApiError(404, 'not_found', 'Not Found');
  return new Response(asset.body(), {
    headers: { 'content-type': asset.type, 'cache-control': 'public, max-age=3600' },
  });
};

const indexItem = ({ url, title, summary }: ServedDocument): string =>
  `<li><a href="${escaped(url)}">${escaped(title)}</a><span>${escaped(summary)}</span></li>`;

interface DocsPage {
  title: string;
  content: string;
  all: ServedDocument[];
  url?: string;
  head?: string;
}

function pageOf(config: Base, { all, url, ...page }: DocsPage): Response {
  const menus = SECTIONS.map((section) => {
    const pages = all.filter((one) => one.section === section);
    const open = section === 'Guides' || pages.some((one) => one.url === url) ? ' open' : '';
    return pages.length === 0
      ? ''
      : `<details${open}><summary>${escaped(section)}</summary><ul>${pages.map((one) => entry(one, url)).join('')}</ul></details>`;
  });
  return framed(config, { ...page, menu: { label: 'Documents', html: menus.join('') } });
}
