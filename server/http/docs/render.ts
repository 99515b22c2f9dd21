import { posix } from 'node:path';
import type { ServedDocument } from './documents.ts';

/** Pictures that documents show, by file. */
export const PICTURES: Record<string, string> = { 'client/console/overview.png': '/docs/assets/overview.png' };

/**
 * HTML of a Markdown file without its comments. Embedded HTML is escaped; links lead to served pages, to headings or to
 * https addresses only.
 */
export function renderDocument(document: ServedDocument, all: ServedDocument[]): string {
  const html = Bun.markdown.html(document.markdown.replaceAll(/<!--[^]*?-->/g, ''), {
    noHtmlBlocks: true,
    noHtmlSpans: true,
    headings: { ids: true },
  });
  const pages = new Map(all.map(({ file, url }) => [file, url]));
  const folder = posix.dirname(document.file);
  return new HTMLRewriter()
    .on('a', {
      element(link) {
        const target = targetOf(link.getAttribute('href') ?? '', { folder, pages });
        if (target === null) link.removeAttribute('href');
        else link.setAttribute('href', target);
        if (target?.startsWith('http')) link.setAttribute('rel', 'noopener noreferrer');
      },
    })
    .on('img', {
      element(image) {
        const url = PICTURES[posix.join(folder, image.getAttribute('src') ?? '')];
        if (url) image.setAttribute('src', url);
        else image.remove();
      },
    })
    .transform(html);
}

/** Null for source files, which the service does not serve, and for schemes such as `javascript:`. */
function targetOf(href: string, { folder, pages }: { folder: string; pages: Map<string, string> }): string | null {
  if (href.startsWith('#') || /^https?:\/\//.test(href)) return href;
  if (/^[a-z][a-z\d+.-]*:/i.test(href) || href.startsWith('//')) return null;
  if (href.startsWith('/docs')) return href;
  const [path = '', heading] = href.split('#');
  const file = posix.join(folder, path);
  const url = pages.get(file) ?? pages.get(posix.join(file, 'README.md'));
  return url === undefined ? null : heading ? `${url}#${heading}` : url;
}

/**
 * HTML whose links and files on this host are below the base path. In texts quotes are escaped, so that only attributes
 * match.
 */
export const below = (base_path: string, html: string): string =>
  (base_path && html.replaceAll(/ (href|src|data-path)="\/(?!\/)/g, ` $1="${base_path}/`)) || html;

/** Text for an HTML element or attribute. */
export const escaped = (text: string): string => Bun.escapeHTML(text);
