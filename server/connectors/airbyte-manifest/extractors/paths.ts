import { isMapping } from '../interpolation/values.ts';

/** What stands at a path of names and positions; undefined when there is nothing. */
export function atPath(value: unknown, path: readonly (string | number)[]): unknown {
  let found = value;
  for (const part of path) {
    if (Array.isArray(found)) found = found.at(Number(part));
    else if (isMapping(found) && Object.hasOwn(found, part)) found = found[part];
    else return undefined;
  }
  return found;
}

/** All that matches a path in which `*` stands for every name and position. */
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

/** Writes a value below a path, making mappings on the way. */
export function setAtPath(target: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let place = target;
  for (const part of path.slice(0, -1)) {
    const next = Object.hasOwn(place, part) ? place[part] : undefined;
    if (isMapping(next)) place = next;
    else {
      const made: Record<string, unknown> = {};
      put(place, part, made);
      place = made;
    }
  }
  put(place, path.at(-1) ?? '', value);
}

/** `__proto__` is a name like any other here. */
function put(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}
