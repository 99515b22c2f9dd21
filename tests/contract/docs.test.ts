import { describe, expect, test } from 'bun:test';
import { createApp } from '../../server/http/app.ts';
import { servedDocuments } from '../../server/http/docs/documents.ts';
import { groupsOf } from '../../server/http/docs/reference/groups.ts';
import { renderDocument } from '../../server/http/docs/render.ts';
import { openApiDocument } from '../../server/http/openapi.ts';
import { proceduresOf } from '../../server/http/rest.ts';
import { appRouter, restRouter } from '../../server/router.ts';
import { testDeps } from '../support/database.ts';
import type { EndpointMeta } from '../../server/api/endpoint-meta.ts';

const { deps } = await testDeps();
const app = createApp(deps);
const get = async (path: string) => app.handle(new Request(`http://localhost${path}`));
const documents = await servedDocuments();

const linksOf = (html: string) => [...html.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, url]) => url!);
const overview = await (await get('/docs/api')).text();
const reference = new Set(linksOf(overview).flatMap((link) => link.match(/^\/docs\/api[^#]*/) ?? []));
const pages = new Map([['/docs/api', overview]]);
for (const url of ['/docs', ...documents.map((one) => one.url), ...reference])
  pages.set(url, await (await get(url)).text());

describe('the documentation', () => {
  test('serves every document with its own content', () => {
    expect(documents.length).toBeGreaterThan(10);
    expect(new Set(documents.map(({ url }) => url)).size).toBe(documents.length);
    for (const { url, title, summary } of documents) {
      expect(pages.get(url), url).toContain(`<title>${Bun.escapeHTML(title)} ·`);
      expect(summary, url).not.toBe('');
    }
  });

  test('lists every document and the API reference in the index', () => {
    const listed = linksOf(pages.get('/docs')!);
    expect(listed).toEqual(expect.arrayContaining(['/docs/api', ...documents.map(({ url }) => url)]));
  });

  test('has only links that resolve, headings included', async () => {
    const broken: string[] = [];
    for (const [url, html] of pages) {
      for (const link of new Set(linksOf(html))) {
        if (/^https?:\/\//.test(link)) continue;
        const [path = '', heading] = link.split('#');
        const target = path === '' ? url : path;
        const text = pages.get(target);
        if (text === undefined && (await get(target)).status !== 200) broken.push(`${url} -> ${link}`);
        if (heading && text !== undefined && !text.includes(` id="${heading}"`)) broken.push(`${url} -> ${link}`);
      }
    }
    expect(broken).toEqual([]);
  });

  test('forbids inline scripts and styles and everything from elsewhere', async () => {
    for (const url of pages.keys()) {
      const policy = (await get(url)).headers.get('content-security-policy')!;
      expect(policy).toStartWith("default-src 'none'");
      expect(policy).not.toMatch(/unsafe|http/);
    }
    for (const html of pages.values()) {
      expect(html).not.toMatch(/<script(?! src="\/docs\/)|<style| style=| on\w+="/);
    }
  });

  test('answers 404 for unknown pages', async () => {
    for (const path of [
      'nothing',
      'guides/nothing',
      'assets/nothing',
      'api/nothing',
      'api/constructor',
      '..%2f..%2fpackage.json',
      'constructor',
    ]) {
      expect((await get(`/docs/${path}`)).status, path).toBe(404);
    }
  });

  test('escapes HTML and drops links with other schemes', () => {
    const markdown =
      '# A\n\n[x](javascript:alert(1)) [y](JavaScript:alert(1)) [z](data:text/html,1) <script>1</script>';
    const html = renderDocument({ ...documents[0]!, markdown }, documents);
    expect(html).not.toMatch(/javascript:|data:|<script/i);
    expect(html).toContain('&lt;script&gt;');
  });
});

describe('the API reference', () => {
  const named = { ...appRouter._def.procedures } as unknown as Record<string, { _def: { meta?: EndpointMeta } }>;
  const served = proceduresOf([appRouter, restRouter]);
  const groups = groupsOf(openApiDocument(served), served);
  const all = groups.flatMap(({ slug, operations }) => operations.map((operation) => ({ slug, operation })));
  const sectionOf = ({ slug, operation }: (typeof all)[number]) =>
    pages
      .get(`/docs/api/${slug}`)!
      .split(`<section class="operation" id="${operation.id}">`)[1]!
      .split('</section>')[0]!;

  test('has every operation of the document and every procedure of the typed client once', () => {
    const nameOf = ({ method, path }: (typeof served)[number]['endpoint']) => `${method} ${path}`;
    const endpoints = all.flatMap(({ operation: { endpoint } }) => (endpoint ? [nameOf(endpoint)] : []));
    expect(endpoints.toSorted()).toEqual(served.map(({ endpoint }) => nameOf(endpoint)).toSorted());
    const typed = all.flatMap(({ operation: { procedure } }) => procedure ?? []);
    expect(typed.toSorted()).toEqual(Object.keys(named).toSorted());
  });

  test('shows each with description, samples in three languages, example and errors', () => {
    for (const one of all) {
      const html = sectionOf(one);
      const { told, endpoint } = one.operation;
      expect(html, one.operation.id).toContain(Bun.escapeHTML(told.summary!));
      expect(told.description, one.operation.id).toBeTruthy();
      for (const language of ['curl', 'typescript', 'python'])
        expect(html).toContain(`<pre data-language="${language}"`);
      const hasJson = Object.entries(told.responses!).some(
        ([status, response]) =>
          status.startsWith('2') && 'content' in response && response.content?.['application/json'],
      );
      expect(html.includes('class="response"'), one.operation.id).toBe(hasJson);
      if (endpoint) expect(html, one.operation.id).toContain('<dt>401</dt>');
    }
  });

  test('sends the documented example, path and key in each language', () => {
    const one = all.find(({ operation }) => operation.id === 'update_connection')!;
    const html = sectionOf(one).replaceAll('&quot;', '"').replaceAll('&#x27;', "'");
    const path = '/connections/019a0000-0000-7000-8000-000000000001"';
    for (const text of [
      `curl -X POST "$DATA_PIPELINES_URL${path} \\\n`,
      `-H "Authorization: Bearer $DATA_PIPELINES_KEY"`,
      `api.connections.update.mutate({\n  connection_id: '019a0000-0000-7000-8000-000000000001',\n  status: 'paused',\n})`,
      `requests.post(\n    f"{os.environ['DATA_PIPELINES_URL']}${path},\n`,
      `    json={\n        "status": "paused",\n    },`,
    ]) {
      expect(html).toContain(text);
    }
  });
});
