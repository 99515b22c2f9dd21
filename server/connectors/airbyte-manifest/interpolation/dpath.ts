import { isMapping } from './values.ts';

/** The value at a path of names and list positions; undefined when there is none. */
export function atPath(value: unknown, path: readonly (string | number)[]): unknown {
  let found = value;
  for (const part of path) {
    if (Array.isArray(found)) found = found.at(Number(part));
    else if (isMapping(found) && Object.hasOwn(found, part)) found = found[part];
    else return undefined;
  }
  return found;
}

/** All values at a path in which `*` matches every name and position. */
export function allAtPath(value: unknown, path: readonly string[]): unknown[] {
  const [part, ...rest] = path;
  if (part === undefined) return [value];
  if (part !== '*') {
    const next = atPath(value, [part]);
    return next === undefined ? [] : allAtPath(next, rest);
  }
  const children = Array.isArray(value) ? value : isMapping(value) ? Object.values(value) : [];
  return children.flatMap((child) => allAtPath(child, rest));
}

/** Sets the value at a path, creating mappings on the way. */
export function setAtPath(target: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let place = target;
  for (const part of path.slice(0, -1)) {
    const next = Object.hasOwn(place, part) ? place[part] : undefined;
    if (isMapping(next)) place = next;
    else {
      const created: Record<string, unknown> = {};
      put(place, part, created);
      place = created;
    }
  }
  put(place, path.at(-1) ?? '', value);
}

/** A plain assignment would treat `__proto__` specially. */
function put(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}
