export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

/** A reference to nothing, or to itself. */
export class ReferenceError extends Error {}

const MAX_DEPTH = 100;
const REFERENCE = /^#\/(.*)$/;
export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Replaces `$ref: "#/a/b"`, and texts of that form, by their targets. Entries next to a `$ref` override those of the
 * target. Targets are shared, not copied, so that the document does not grow.
 */
export function resolveReferences(document: JsonObject): JsonObject {
  const resolver = new Resolver(document);
  const whole: JsonObject = {};
  for (const [name, part] of Object.entries(document)) whole[name] = resolver.resolve(part, [], 1);
  return whole;
}

class Resolver {
  readonly #done = new Map<string, Json>();

  constructor(private readonly document: JsonObject) {}

  resolve(node: Json, open: readonly string[], depth: number): Json {
    if (depth > MAX_DEPTH) throw new ReferenceError(`The document is nested deeper than ${MAX_DEPTH} levels`);
    if (typeof node === 'string') return REFERENCE.test(node) ? this.#follow(node, open, depth) : node;
    if (Array.isArray(node)) return node.map((item) => this.resolve(item, open, depth + 1));
    if (!isObject(node)) return node;
    const own: JsonObject = {};
    for (const [name, part] of Object.entries(node))
      if (name !== '$ref') own[name] = this.resolve(part, open, depth + 1);
    const reference = node.$ref;
    if (typeof reference !== 'string' || !REFERENCE.test(reference))
      return reference === undefined ? own : { ...own, $ref: reference };
    const named = this.#follow(reference, open, depth);
    return isObject(named) ? { ...named, ...own } : named;
  }

  #follow(reference: string, open: readonly string[], depth: number): Json {
    const known = this.#done.get(reference);
    if (known !== undefined) return known;
    if (open.includes(reference)) throw new ReferenceError(`${reference} refers to itself`);
    const found = lookUp(this.document, reference);
    const resolved = this.resolve(found, [...open, reference], depth + 1);
    this.#done.set(reference, resolved);
    return resolved;
  }
}

/** Names in a document may contain slashes, so several segments are tried as one name. */
function lookUp(document: JsonObject, reference: string): Json {
  let node: Json | undefined = document;
  let parts = (REFERENCE.exec(reference)?.[1] ?? '').split('/');
  while (parts.length > 0) {
    const taken: number = parts.findIndex((_, at) => has(node, parts.slice(0, at + 1).join('/'))) + 1;
    if (taken === 0) throw new ReferenceError(`${reference} does not exist`);
    node = child(node, parts.slice(0, taken).join('/'));
    parts = parts.slice(taken);
  }
  return node ?? null;
}

const has = (node: Json | undefined, name: string): boolean =>
  Array.isArray(node) ? Number(name) < node.length : isObject(node) && Object.hasOwn(node, name);
const child = (node: Json | undefined, name: string): Json | undefined =>
  Array.isArray(node) ? node[Number(name)] : isObject(node) ? node[name] : undefined;

/** The size with shared parts counted each time: the cost of walking through the document. */
export function expandedSize(node: Json): number {
  const known = new Map<Json, number>();
  const sizeOf = (part: Json): number => {
    if (typeof part !== 'object' || part === null) return 1;
    const seen = known.get(part);
    if (seen !== undefined) return seen;
    const size = Object.values(part).reduce((sum: number, item) => sum + sizeOf(item), 1);
    known.set(part, size);
    return size;
  };
  return sizeOf(node);
}
