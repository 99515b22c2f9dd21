import type { oas31 } from 'zod-openapi';
import { ApiError } from '../../../platform/errors.ts';
import type { Handler } from '../../edge.ts';
import type { ServedProcedure } from '../../rest.ts';
import { type Base, entry, framed } from '../frame.ts';
import { escaped } from '../render.ts';
import { fieldList, fieldsOf, prose, SCHEMAS_URL, typeOf } from './fields.ts';
import { type ApiDocument, groupsOf, type ReferenceGroup } from './groups.ts';
import { operationHtml } from './operation.ts';
import { overviewHtml } from './overview.ts';

const HEAD = `<link rel="stylesheet" href="/docs/assets/reference.css">
<script src="/docs/assets/reference.js" defer></script>`;

const urlOf = ({ slug }: ReferenceGroup) => `/docs/api/${slug}`;

/** The API reference: an overview, a page for each group of operations, and one with all named schemas. */
export function referencePages(config: Base, documentOf: () => ApiDocument, served: readonly ServedProcedure[]) {
  let groups: ReferenceGroup[] | undefined;
  const known = () => (groups ??= groupsOf(documentOf(), served));
  const rendered = new Map<string, string>();
  const kept = (slug: string, render: () => string) => {
    const html = rendered.get(slug) ?? render();
    rendered.set(slug, html);
    return html;
  };
  const page = (title: string, url: string, content: string) =>
    framed(config, {
      title,
      content,
      head: HEAD,
      wide: true,
      menu: { label: 'API reference', html: menuOf(known(), url) },
    });

  const overview: Handler = () =>
    page(
      'API reference',
      '/docs/api',
      kept('', () => overviewHtml(documentOf(), known(), urlOf)),
    );
  const group: Handler = ({ params: [slug = ''] }) => {
    if (slug === 'schemas')
      return page(
        'Schemas',
        SCHEMAS_URL,
        kept(slug, () => schemasHtml(documentOf())),
      );
    const found = known().find((one) => one.slug === slug);
    if (!found) throw new ApiError(404, 'not_found', 'Not Found');
    return page(
      found.title,
      urlOf(found),
      kept(slug, () => groupHtml(found, documentOf())),
    );
  };
  return { overview, group };
}

function menuOf(groups: ReferenceGroup[], current: string): string {
  const lists = groups.map((group) => {
    const url = urlOf(group);
    const links = group.operations.map(({ id, told, endpoint }) => {
      const method = endpoint?.method ?? 'tRPC';
      const badge = `<b class="method ${method.toLowerCase()}">${method === 'DELETE' ? 'DEL' : method}</b>`;
      return `<li><a href="${url}#${escaped(id)}"><span>${escaped(told.summary ?? id)}</span>${badge}</a></li>`;
    });
    return `<details${url === current ? ' open' : ''}><summary>${escaped(group.title)}</summary><ul>${links.join('')}</ul></details>`;
  });
  const first = entry({ url: '/docs/api', title: 'Overview' }, current);
  const last = entry({ url: SCHEMAS_URL, title: 'Schemas' }, current);
  return `<search><input type="search" placeholder="Find an operation" aria-label="Find an operation" hidden></search><ul>${first}${last}</ul>${lists.join('')}`;
}

const groupHtml = (group: ReferenceGroup, document: ApiDocument): string =>
  `<h1>${escaped(group.title)}</h1><p>${escaped(group.summary)}</p>${group.operations
    .map((operation) => operationHtml(operation, document))
    .join('\n')}`;

function schemasHtml({ components }: ApiDocument): string {
  const schemas = Object.entries((components?.schemas ?? {}) as Record<string, oas31.SchemaObject>);
  const sections = schemas
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, schema]) => {
      const fields = fieldsOf(schema);
      const values = (schema.enum ?? []).map((value) => `<code>${escaped(String(value))}</code>`).join(' ');
      const body = fields.length > 0 ? fieldList(fields) : `<p>${values || typeOf(schema)}</p>`;
      return `<section class="schema" id="${escaped(name)}"><h2><a href="#${escaped(name)}">${escaped(name)}</a></h2>${prose(schema.description)}${body}</section>`;
    });
  return `<h1>Schemas</h1><p>The named objects of requests and responses.</p>${sections.join('\n')}`;
}
