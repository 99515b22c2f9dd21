import { ConfigurationError } from '../../contract/errors.ts';
import { REQUEST_PARTS } from './signing/signatures.ts';
import { rawNumber } from '../../cells/json-line.ts';

/** The values that `{{ … }}` may refer to. A reference is replaced by its value; there are no expressions. */
export interface TemplateScope {
  config?: Record<string, unknown>;
  secrets?: Record<string, unknown>;
  /** Where the read continues, in the format of the stream's `incremental`. */
  cursor?: string | number | null;
  window?: { start: string | number | null; end: string | number | null };
  /** The unchanged record of the parent stream. */
  parent?: Record<string, unknown>;
  /** Only where a request is signed. */
  request?: Record<(typeof REQUEST_PARTS)[number], string>;
  page?: { token: string | null; number: number; offset: number; size: number | null };
  /** The job of a stream, once it is created. */
  job?: { id: string };
  /** A row that is sent, by column. */
  row?: Record<string, unknown>;
  /** Rows that are sent in one request. */
  rows?: unknown[];
  /** The match key of a row, by column. */
  key?: Record<string, unknown>;
  /** The record that a search has found for a row. */
  found?: Record<string, unknown> | null;
}

export type TemplateRoot = keyof TemplateScope;

const REFERENCE = /\{\{\s*([\w-]+(?:\.[\w-]+)*)\s*\}\}/g;
const WHOLE = /^\{\{\s*([\w-]+(?:\.[\w-]+)*)\s*\}\}$/;
const LEAVES: Partial<Record<TemplateRoot, readonly string[]>> = {
  window: ['start', 'end'],
  request: REQUEST_PARTS,
  page: ['token', 'number', 'offset', 'size'],
  job: ['id'],
};

const WITHOUT_FIELDS: readonly TemplateRoot[] = ['cursor', 'rows'];
const MAY_BE_WHOLE: readonly TemplateRoot[] = ['row', 'key', 'found'];

/** References in a text, e.g. `secrets.token`. */
export const referencesIn = (text: string): string[] => Array.from(text.matchAll(REFERENCE), (match) => match[1] ?? '');

/** What is wrong with a template, or null. */
export function templateProblem(text: string, roots: readonly TemplateRoot[]): string | null {
  const rest = text.replaceAll(REFERENCE, '');
  if (rest.includes('{{') || rest.includes('}}'))
    return 'A reference is written {{ name.field }}, with nothing else inside the braces';
  for (const name of referencesIn(text)) {
    const [root = '', ...path] = name.split('.');
    const known = roots.find((one) => one === root);
    if (!known) return `{{ ${name} }} is not available here. Available: ${roots.join(', ')}`;
    const leaves = LEAVES[known];
    const isWhole = WITHOUT_FIELDS.includes(known);
    if (path.length > 0 && isWhole) return `{{ ${name} }} has no fields. Use {{ ${known} }}.`;
    if (path.length === 0 && !isWhole && !MAY_BE_WHOLE.includes(known))
      return `{{ ${name} }} needs a field, such as {{ ${name}.name }}`;
    if (leaves && (path.length > 1 || !leaves.includes(path[0] ?? ''))) {
      return `{{ ${name} }} does not exist. ${known} has ${leaves.join(', ')}`;
    }
  }
  return null;
}

function lookUp(name: string, scope: TemplateScope): unknown {
  let value: unknown = scope;
  for (const part of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return null;
    value = (value as Record<string, unknown>)[part];
  }
  return value ?? null;
}

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : (rawNumber(value) ?? JSON.stringify(value));

/** The text with its references replaced; null when one of them has no value. */
export function renderText(text: string, scope: TemplateScope, encode = (value: string) => value): string | null {
  let missing = false;
  const rendered = text.replaceAll(REFERENCE, (_, name: string) => {
    const value = lookUp(name, scope);
    missing ||= value === null;
    return value === null ? '' : encode(textOf(value));
  });
  return missing ? null : rendered;
}

/** @throws ConfigurationError when a reference has no value */
export function requireText(text: string, scope: TemplateScope, encode?: (value: string) => string): string {
  const rendered = renderText(text, scope, encode);
  if (rendered !== null) return rendered;
  const name = referencesIn(text).find((one) => lookUp(one, scope) === null);
  throw new ConfigurationError('missing_value', `{{ ${name} }} has no value`);
}

/** Entries whose references have no value are left out: the first read has no cursor, the first page no token. */
export function renderEntries(entries: Record<string, string>, scope: TemplateScope): [name: string, value: string][] {
  return Object.entries(entries).flatMap(([name, text]) => {
    const value = renderText(text, scope);
    return value === null ? [] : [[name, value] as [string, string]];
  });
}

/** A JSON value with its texts rendered. A text that is a single reference becomes the value with its type. */
export function renderJson(value: unknown, scope: TemplateScope): unknown {
  if (typeof value === 'string') {
    const whole = WHOLE.exec(value)?.[1];
    return whole === undefined ? (renderText(value, scope) ?? undefined) : (lookUp(whole, scope) ?? undefined);
  }
  if (Array.isArray(value)) return value.map((item) => renderJson(item, scope) ?? null);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, renderJson(item, scope)]));
}
