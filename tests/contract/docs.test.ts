import { describe, expect, test } from 'bun:test';
import { createApp } from '../../server/http/app.ts';
import { servedDocuments } from '../../server/http/docs/documents.ts';
import { renderDocument } from '../../server/http/docs/render.ts';
import { testDeps } from '../support/database.ts';

const { deps } = await testDeps();
const app = createApp(deps);
const get = async (path: string) => app.handle(new Request(`http://localhost${path}`));
const documents = await servedDocuments();

const pages = new Map<string, string>();
for (const url of ['/docs', ...documents.map((one) => one.url)]) pages.set(url, await (await get(url)).text());
const linksOf = (html: string) => [...html.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, url]) => url!);

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
    for (const path of ['nothing', 'guides/nothing', 'assets/nothing', '..%2f..%2fpackage.json', 'constructor']) {
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
