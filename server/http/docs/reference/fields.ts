import type { oas31 } from 'zod-openapi';
import { escaped } from '../render.ts';

type Schema = oas31.SchemaObject;

export const SCHEMAS_URL = '/docs/api/schemas';
/** Objects within objects, before the reader is left with the word `object`. */
const MAX_DEPTH = 4;

/** Markdown of a description, without embedded HTML. */
export const prose = (text: string | undefined): string =>
  text ? Bun.markdown.html(text, { noHtmlBlocks: true, noHtmlSpans: true }) : '';

export interface ShownField {
  name: string;
  schema: Schema | oas31.ReferenceObject;
  required: boolean;
  description?: string | undefined;
}

/** The fields of an object as a list; objects without a name of their own are listed within. */
export function fieldList(fields: ShownField[], depth = 0): string {
  const items = fields.map(({ name, schema, required, description }) => {
    const inner = depth < MAX_DEPTH ? fieldsOf(schema as Schema) : [];
    return `<div><dt><code>${escaped(name)}</code> <span class="type">${typeOf(schema)}</span>${
      required ? ' <b>required</b>' : ''
    }</dt><dd>${prose(description ?? (schema as Schema).description)}${limitsOf(schema as Schema)}${
      inner.length === 0 ? '' : `<details><summary>Fields</summary>${fieldList(inner, depth + 1)}</details>`
    }</dd></div>`;
  });
  return `<dl class="fields">${items.join('')}</dl>`;
}

/** The fields of an object that has no name, of the items of a list of such, or of the object beside null. */
export function fieldsOf(schema: Schema): ShownField[] {
  if (schema.properties) {
    const required = new Set(schema.required);
    return Object.entries(schema.properties).map(([name, own]) => ({
      name,
      schema: own,
      required: required.has(name),
    }));
  }
  if (schema.items && typeof schema.items === 'object') return fieldsOf(schema.items as Schema);
  const [only, another] = alternatives(schema);
  return only && !another ? fieldsOf(only) : [];
}

/** The members of a union, but null. */
const alternatives = (schema: Schema): Schema[] =>
  ((schema.anyOf ?? schema.oneOf ?? []) as Schema[]).filter(({ type }) => type !== 'null');

/** What a value may be, as HTML. Named schemas are links. */
export function typeOf(schema: Schema | oas31.ReferenceObject): string {
  if ('$ref' in schema && schema.$ref) return schemaLink(schema.$ref.split('/').at(-1)!);
  const own = schema as Schema;
  const union = own.anyOf ?? own.oneOf;
  if (union) return [...new Set((union as Schema[]).map(typeOf))].join(' or ');
  if (own.allOf) return (own.allOf as Schema[]).map(typeOf).join(' and ');
  if (own.const !== undefined) return `<code>${escaped(JSON.stringify(own.const))}</code>`;
  const types = [own.type ?? []].flat();
  return types.length === 0 ? 'any value' : types.map((type) => plainType(type, own)).join(' or ');
}

function plainType(type: string, { format, items, additionalProperties }: Schema): string {
  if (type === 'array') return `list of ${items && typeof items === 'object' ? typeOf(items) : 'any value'}`;
  if (type === 'object' && typeof additionalProperties === 'object') {
    return `object with values of ${typeOf(additionalProperties)}`;
  }
  return type === 'string' && format ? escaped(format) : type;
}

const schemaLink = (name: string) => `<a href="${SCHEMAS_URL}#${escaped(name)}">${escaped(name)}</a>`;

/** Values, bounds and the default of a schema, as HTML. */
function limitsOf(schema: Schema): string {
  const one = { ...schema, ...(alternatives(schema).length === 1 ? alternatives(schema)[0] : {}) };
  const values = one.enum ?? (typeof one.items === 'object' ? (one.items as Schema).enum : undefined);
  const notes = [
    values && `One of ${values.map((value) => `<code>${escaped(String(value))}</code>`).join(' ')}`,
    schema.default !== undefined && `Default <code>${escaped(JSON.stringify(schema.default))}</code>`,
    between(one.minimum, one.maximum, ''),
    between(one.minLength || undefined, one.maxLength, ' characters'),
    between(one.minItems || undefined, one.maxItems, ' items'),
  ];
  const known = notes.filter((note) => typeof note === 'string' && note !== '');
  return known.length === 0 ? '' : `<p class="limits">${known.join(' · ')}</p>`;
}

/** Bounds that are only those of the type say nothing. */
function between(least: number | undefined, most: number | undefined, unit: string): string {
  const [from, to] = [least, most].map((bound) =>
    Math.abs(bound ?? Infinity) >= Number.MAX_SAFE_INTEGER ? null : bound!,
  );
  const text = (value: number) => value.toLocaleString('en-US');
  if (from != null && to != null) return `${text(from)} to ${text(to)}${unit}`;
  if (to != null) return `At most ${text(to)}${unit}`;
  return from != null ? `At least ${text(from)}${unit}` : '';
}
