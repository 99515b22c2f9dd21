import { isMaskOf, MASK } from '../../pipeline-file/mask.ts';
import type { Body } from '../../pipeline-file/keys.ts';

export interface Change {
  path: string;
  from: unknown;
  to: unknown;
}

const isObject = (value: unknown): value is Body =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Keys whose values are never printed. */
export const SECRET_KEYS = ['private_key', 'encrypted_private_key', 'secret'];

/** The value with its secrets masked. */
function hidden(value: unknown, path: string): unknown {
  if (SECRET_KEYS.some((key) => path === key || path.endsWith(`.${key}`))) return MASK;
  if (Array.isArray(value)) return value.map((element) => hidden(element, path));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, hidden(inner, key)]));
}

/** The identity of a list element; null if elements are compared by position. */
export const identityOf = (element: unknown): string | null => {
  if (!isObject(element)) return null;
  const { name, namespace } = element;
  if (typeof name === 'string') return `${typeof namespace === 'string' ? namespace : ''}.${name}`;
  return Array.isArray(element.path) ? element.path.join('.') : null;
};

/**
 * Where `actual` differs from `wanted`. Keys that `wanted` omits are ignored: the service fills in defaults, and other
 * settings may be managed elsewhere. A masked secret is never a difference.
 */
export function differences(wanted: unknown, actual: unknown, path = ''): Change[] {
  if (wanted === undefined || isMaskOf(actual, wanted)) return [];
  if (isObject(wanted) && isObject(actual)) {
    return Object.entries(wanted).flatMap(([key, value]) =>
      differences(value, actual[key], path ? `${path}.${key}` : key),
    );
  }
  if (Array.isArray(wanted) && Array.isArray(actual)) return listDifferences(wanted, actual, path);
  return (wanted ?? null) === (actual ?? null) ? [] : [{ path, from: actual ?? null, to: hidden(wanted, path) }];
}

function listDifferences(wanted: unknown[], actual: unknown[], path: string): Change[] {
  const names = wanted.map(identityOf);
  if (names.includes(null)) {
    if (wanted.length !== actual.length) return [{ path, from: actual, to: hidden(wanted, path) }];
    return wanted.flatMap((element, at) => differences(element, actual[at], `${path}[${at}]`));
  }
  const known = new Map(actual.map((element) => [identityOf(element), element]));
  const changed = wanted.flatMap((element, at) => {
    const name = names[at]!;
    const place = `${path}.${name.replace(/^\./, '')}`;
    return known.has(name)
      ? differences(element, known.get(name), place)
      : [{ path: place, from: null, to: hidden(element, place) }];
  });
  const gone = [...known].filter(([name]) => !names.includes(name));
  return [
    ...changed,
    ...gone.map(([name]) => ({ path: `${path}.${String(name).replace(/^\./, '')}`, from: 'present', to: null })),
  ];
}
