export type Json = Record<string, unknown>;

export const objectOf = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Names as they are compared: `page[number]`, `pageNumber` and `page_number` are one. */
export const bare = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');

const MAX_REFERENCES = 20;
/** Of one object. */
const MAX_PROPERTIES = 500;
/** What is followed only with a copy of the referenced document, which the service does not fetch. */
const UNKNOWN: Json = {};

/** The parts of an OpenAPI 3 or Swagger 2 document, with references within it followed. */
export class OpenApiDocument {
  readonly #schemas = new WeakMap<Json, Json>();

  constructor(readonly root: Json) {}

  resolve(value: unknown): Json {
    let found = objectOf(value);
    for (let followed = 0; typeof found.$ref === 'string'; followed += 1) {
      if (followed === MAX_REFERENCES || !found.$ref.startsWith('#/')) return UNKNOWN;
      let at: unknown = this.root;
      for (const part of found.$ref.slice(2).split('/')) {
        const key = decoded(part);
        at = Object.hasOwn(objectOf(at), key) ? objectOf(at)[key] : undefined;
      }
      found = objectOf(at);
    }
    return found;
  }

  /** A schema with the properties of its `allOf` parts, or of the first alternative that has any. */
  schema(value: unknown): Json {
    const schema = this.resolve(value);
    const known = this.#schemas.get(schema);
    if (known) return known;
    // A part that refers back to the whole adds nothing. Without this, a small document could take forever.
    this.#schemas.set(schema, UNKNOWN);
    const parts = listOf(schema.allOf).map((part) => this.schema(part));
    const [first = UNKNOWN] = [...listOf(schema.oneOf), ...listOf(schema.anyOf)]
      .map((part) => this.schema(part))
      .filter((part) => part.properties !== undefined || part.items !== undefined);
    const all = [first, ...parts, schema];
    const properties = all.flatMap((one) => Object.entries(objectOf(one.properties)));
    const whole: Json = {
      ...Object.assign({}, ...all),
      ...(properties.length > 0 && { properties: Object.fromEntries(properties.slice(0, MAX_PROPERTIES)) }),
    };
    this.#schemas.set(schema, whole);
    return whole;
  }

  /** The schemas of an object's properties. */
  properties(schema: Json): [name: string, schema: Json][] {
    return Object.entries(objectOf(schema.properties)).map(([name, value]) => [name, this.schema(value)]);
  }
}

function decoded(part: string): string {
  const plain = part.replaceAll('~1', '/').replaceAll('~0', '~');
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
}

/** Whether values of a schema may be of the type; one without a type may be anything. */
export function mayBe(schema: Json, ...types: string[]): boolean {
  const own = typeof schema.type === 'string' ? [schema.type] : listOf(schema.type);
  return own.length === 0 || own.some((type) => types.includes(textOf(type)));
}

/** A JMESPath expression for a path of names. */
export const selectorOf = (path: readonly string[]): string =>
  path.length === 0 ? '@' : path.map((name) => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name))).join('.');
