import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { openApiDocument } from '../server/http/openapi.ts';
import { proceduresOf } from '../server/http/rest.ts';
import { appRouter, restRouter } from '../server/router.ts';

const ROOT = join(import.meta.dir, '..');

/** Words that read like a translation, and their replacements. */
const AVOIDED: [pattern: RegExp, instead: string][] = [
  [/\b(tell|tells|telling|told)\b/i, 'report, show, say'],
  [/\b(make|makes|making|made)\b(?! sure)/i, 'create, or the precise verb'],
  [/\bchosen\b/i, 'selected'],
  [/\bin sight\b/i, 'visible, selected'],
  [/\banew\b/i, 'again'],
  [/\bby hand\b/i, 'manually, manual'],
  [/\b(he|his|him|himself)\b/i, 'the thing, or they'],
  [/\bfaces?\b/i, 'API surface, interface'],
  [/\b(whoever|nobody|somebody)\b/i, 'the role or the thing'],
  [/\bsigns? of life\b/i, 'heartbeat'],
];

interface Text {
  where: string;
  text: string;
}

const files = (...patterns: string[]) =>
  patterns.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: ROOT })]).toSorted();
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

describe('texts that users see avoid words of a translation', () => {
  test('in the console', () => expectPlain(files('client/console/**/*.{ts,tsx}').flatMap(sourceTexts)));

  test('in the command line and the typed client', () =>
    expectPlain(files('client/*.ts', 'client/cli/**/*.ts').flatMap(sourceTexts)));

  test('in messages of the service', () => expectPlain(files('server/**/*.ts').flatMap(sourceTexts)));

  test('in the API document', () => {
    const document = openApiDocument(proceduresOf([appRouter, restRouter]));
    expectPlain(described(document, 'openapi.json'));
  });

  test('in READMEs and guides', () =>
    expectPlain(files('*.md', 'client/**/*.md', 'server/**/*.md').flatMap(markdownTexts)));
});

function expectPlain(texts: Text[]): void {
  expect(texts.length).toBeGreaterThan(10);
  const found = texts.flatMap(({ where, text }) =>
    AVOIDED.flatMap(([pattern, instead]) => {
      const word = pattern.exec(text)?.[0];
      return word ? [`${where}: "${word}" (${instead}) in: ${text.trim().replaceAll(/\s+/g, ' ')}`] : [];
    }),
  );
  expect(found).toEqual([]);
}

interface Node {
  type: string;
  start: number;
  [key: string]: unknown;
}

const isNode = (value: unknown): value is Node => typeof (value as Node | null)?.type === 'string';

/** String literals, templates and JSX text of a file; comments are not part of the syntax tree. */
function sourceTexts(path: string): Text[] {
  const source = read(path);
  const texts: Text[] = [];
  const add = (node: Node, text: string) => {
    const line = source.slice(0, node.start).split('\n').length;
    if (isSentence(text) || (node.type === 'JSXText' && /\p{L}/u.test(text)))
      texts.push({ where: `${path}:${line}`, text });
  };
  const visit = (node: Node) => {
    if (isNoText(node)) return;
    if (node.type === 'Literal' && typeof node.value === 'string') add(node, node.value);
    if (node.type === 'JSXText') add(node, String(node.value));
    if (node.type === 'TemplateLiteral') {
      // The parts of a template are one sentence.
      const parts = node.quasis as { value: { cooked: string } }[];
      add(node, parts.map(({ value }) => value.cooked).join('…'));
    }
    for (const child of Object.values(node)) {
      if (Array.isArray(child)) child.filter(isNode).forEach(visit);
      else if (isNode(child)) visit(child);
    }
  };
  visit(parseSync(path, source).program as unknown as Node);
  return texts;
}

/** Types, imports, class names and SQL. */
function isNoText({ type, name, tag }: Node): boolean {
  if (type.startsWith('TS')) return !['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression'].includes(type);
  if (type === 'JSXAttribute') return (name as { name?: unknown }).name === 'className';
  if (type === 'TaggedTemplateExpression') return (tag as { name?: string }).name === 'sql';
  return type === 'ImportDeclaration' || type === 'ImportExpression';
}

/** Two words or more; a single word is a key, a code or a name. */
const isSentence = (text: string) => /\p{L}{2,}[^\n]*\s\p{L}/u.test(text);

/** Summaries, descriptions, titles and examples anywhere in the document. */
function described(value: unknown, where: string): Text[] {
  if (Array.isArray(value)) return value.flatMap((one, at) => described(one, `${where}[${at}]`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    typeof inner === 'string'
      ? ['summary', 'description', 'title', 'detail', 'message'].includes(key)
        ? [{ where: `${where}.${key}`, text: inner }]
        : []
      : described(inner, `${where}.${key}`),
  );
}

/** Paragraphs, list items and table cells without code and link targets. */
function markdownTexts(path: string): Text[] {
  const prose = read(path)
    .replaceAll(/^```[^]*?^```$/gm, (block) => block.replaceAll(/[^\n]/g, ''))
    .replaceAll(/`[^`\n]*`/g, '')
    .replaceAll(/\]\([^)\n]*\)/g, ']');
  return prose.split('\n').flatMap((text, at) => (/\p{L}/u.test(text) ? [{ where: `${path}:${at + 1}`, text }] : []));
}
