import { Ajv, type ErrorObject } from 'ajv';
import { compilePattern } from './interpolation/patterns.ts';

export type Config = Record<string, unknown>;
type Path = (string | number)[];

/** Patterns of manifests run in linear time; one that RE2 does not know forbids nothing. */
function linear(pattern: string): { test(text: string): boolean } {
  const compiled = compilePattern(pattern);
  return { test: (text) => compiled === null || compiled.matcher(text).find() };
}
const regExp = Object.assign(linear, { code: 'linear' });

/**
 * The values of a user as a manifest wants them, its defaults filled in, and what is wrong with them.
 * Formats are not looked at: Airbyte does not either.
 */
export function checkConfig(
  specification: Record<string, unknown> | null,
  given: Config,
): { config: Config; problems: string[] } {
  if (!specification) return { config: given, problems: [] };
  // Names of drafts that nobody has: they are all read as draft 7.
  const { $schema: _, id: __, $id: ___, ...schema } = specification;
  const config = structuredClone(given);
  try {
    const ajv = new Ajv({
      strict: false,
      allErrors: true,
      useDefaults: true,
      validateFormats: false,
      validateSchema: false,
      logger: false,
      code: { regExp },
    });
    const validate = ajv.compile(schema);
    if (validate(config)) return { config, problems: [] };
    return { config, problems: [...new Set((validate.errors ?? []).map(wordsOf))].slice(0, 20) };
  } catch (error) {
    return {
      config,
      problems: [
        `The specification of the manifest cannot be used: ${error instanceof Error ? error.message : String(error)}`,
      ],
    };
  }
}

const wordsOf = ({ instancePath, message, params, keyword }: ErrorObject) => {
  const where = instancePath.slice(1).replaceAll('/', '.');
  if (keyword === 'required')
    return `"${[where, String(params.missingProperty)].filter(Boolean).join('.')}" is missing`;
  const allowed = keyword === 'enum' ? `: ${(params.allowedValues as unknown[]).slice(0, 20).join(', ')}` : '';
  return `${where === '' ? 'The whole' : `"${where}"`} ${message ?? 'is wrong'}${allowed}`;
};

/** Places of a configuration that hold secrets; `*` stands for every item of a list. */
export function secretPlaces(specification: unknown, path: string[] = []): string[] {
  if (typeof specification !== 'object' || specification === null || path.length > 20) return [];
  const { airbyte_secret, properties, items, oneOf, anyOf, allOf } = specification as Record<string, unknown>;
  const own = airbyte_secret === true ? [path.join('.')] : [];
  const branches = [oneOf, anyOf, allOf].flatMap((list) => (Array.isArray(list) ? list : []));
  const named = typeof properties === 'object' && properties !== null ? Object.entries(properties) : [];
  return [
    ...own,
    ...branches.flatMap((branch) => secretPlaces(branch, path)),
    ...named.flatMap(([name, part]) => secretPlaces(part, [...path, name])),
    ...(items === undefined ? [] : secretPlaces(items, [...path, '*'])),
  ];
}

/** Secrets that stand among the values that are no secrets. */
export function misplacedSecrets(specification: unknown, config: Config): string[] {
  const places = new Set(secretPlaces(specification));
  const found = (value: unknown, path: Path): string[] => {
    if (value === null || value === undefined || value === '') return [];
    const pattern = path.map((part) => (typeof part === 'number' ? '*' : part)).join('.');
    if (path.length > 0 && places.has(pattern)) return [path.join('.')];
    if (typeof value !== 'object') return [];
    return Object.entries(value).flatMap(([name, part]) =>
      found(part, [...path, Array.isArray(value) ? Number(name) : name]),
    );
  };
  return found(config, []);
}

/** Two trees as one; where both have a value, that of the second counts. */
export function merged(a: unknown, b: unknown): unknown {
  if (b === undefined || b === null) return a;
  if (Array.isArray(a) && Array.isArray(b))
    return Array.from({ length: Math.max(a.length, b.length) }, (_, at) => merged(a[at], b[at]));
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || Array.isArray(a) || Array.isArray(b)) return b;
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return Object.fromEntries(names.map((name) => [name, merged((a as Config)[name], (b as Config)[name])]));
}
