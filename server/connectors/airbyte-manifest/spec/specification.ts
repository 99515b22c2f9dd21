import type { ErrorObject } from 'ajv';
import { compilePattern } from '../interpolation/patterns.ts';

export type Config = Record<string, unknown>;
type Path = (string | number)[];

/** Patterns run in linear time. One that RE2 does not support accepts everything. Ajv tells them apart by their text. */
function linear(pattern: string): { test(text: string): boolean; toString(): string } {
  const compiled = compilePattern(pattern);
  return { test: (text) => compiled === null || compiled.matcher(text).find(), toString: () => pattern };
}
const regExp = Object.assign(linear, { code: 'linear' });

/** Validates a configuration and fills in the defaults of the spec. Like Airbyte, it does not check formats. */
export function checkConfig(
  specification: Record<string, unknown> | null,
  given: Config,
): { config: Config; problems: string[] } {
  if (!specification) return { config: given, problems: [] };
  // Manifests name arbitrary drafts: all are read as draft 7.
  const { $schema: _, id: __, $id: ___, ...schema } = specification;
  const config = structuredClone(given);
  try {
    // Loaded with its first use: processes start often, and most never need it.
    const { Ajv } = require('ajv') as typeof import('ajv');
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
    return { config, problems: [...new Set((validate.errors ?? []).map(messageOf))].slice(0, 20) };
  } catch (error) {
    return {
      config,
      problems: [
        `The spec of the manifest is not a valid JSON Schema: ${error instanceof Error ? error.message : String(error)}`,
      ],
    };
  }
}

const messageOf = ({ instancePath, message, params, keyword }: ErrorObject) => {
  const where = instancePath.slice(1).replaceAll('/', '.');
  if (keyword === 'required')
    return `"${[where, String(params.missingProperty)].filter(Boolean).join('.')}" is missing`;
  const allowed = keyword === 'enum' ? `: ${(params.allowedValues as unknown[]).slice(0, 20).join(', ')}` : '';
  return `${where === '' ? 'The configuration' : `"${where}"`} ${message ?? 'is not valid'}${allowed}`;
};

/** Paths of a configuration that hold secrets. `*` stands for every item of a list. */
export function secretPaths(specification: unknown, path: string[] = []): string[] {
  if (typeof specification !== 'object' || specification === null || path.length > 20) return [];
  const { airbyte_secret, properties, items, oneOf, anyOf, allOf } = specification as Record<string, unknown>;
  const own = airbyte_secret === true ? [path.join('.')] : [];
  const branches = [oneOf, anyOf, allOf].flatMap((list) => (Array.isArray(list) ? list : []));
  const named = typeof properties === 'object' && properties !== null ? Object.entries(properties) : [];
  return [
    ...own,
    ...branches.flatMap((branch) => secretPaths(branch, path)),
    ...named.flatMap(([name, part]) => secretPaths(part, [...path, name])),
    ...(items === undefined ? [] : secretPaths(items, [...path, '*'])),
  ];
}

/** Secrets that are among the plain values. */
export function misplacedSecrets(specification: unknown, config: Config): string[] {
  const secret = new Set(secretPaths(specification));
  const found = (value: unknown, path: Path): string[] => {
    if (value === null || value === undefined || value === '') return [];
    const pattern = path.map((part) => (typeof part === 'number' ? '*' : part)).join('.');
    if (path.length > 0 && secret.has(pattern)) return [path.join('.')];
    if (typeof value !== 'object') return [];
    return Object.entries(value).flatMap(([name, part]) =>
      found(part, [...path, Array.isArray(value) ? Number(name) : name]),
    );
  };
  return found(config, []);
}

/** Merges two trees. Where both have a value, the second one wins. */
export function merged(a: unknown, b: unknown): unknown {
  if (b === undefined || b === null) return a;
  if (Array.isArray(a) && Array.isArray(b))
    return Array.from({ length: Math.max(a.length, b.length) }, (_, at) => merged(a[at], b[at]));
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || Array.isArray(a) || Array.isArray(b)) return b;
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return Object.fromEntries(names.map((name) => [name, merged((a as Config)[name], (b as Config)[name])]));
}
