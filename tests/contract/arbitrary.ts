import fc from 'fast-check';
import type { Contract, Json, Schema } from './document.ts';
import type { World } from './world.ts';

const MAX_DEPTH = 6;
const MAX_ITEMS = 3;
const UNKNOWN = '01900000-0000-7000-8000-000000000000';

/** Values that often break services: limits of types, texts that cannot be stored, values of another type. */
export const JUNK: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom(null, true, false, 0, -1, 1.5, 2 ** 31, 2 ** 53, -(2 ** 63), 1e300, '', ' ', 'x'.repeat(5000)),
  fc.constantFrom('a\u0000b', 'a\ud800b', '٣', '𝒳', '0000-01-01', '9999-12-31', '2026-02-30', '2026-01-01T00:00:00Z'),
  fc.constantFrom([], {}, [[]], [null], { a: 1 }, [{}], UNKNOWN, '__proto__', 'constructor', "'; drop table users --"),
  fc.string({ unit: 'binary', maxLength: 40 }),
);

/** Values that a schema of the document accepts; ids come from the world, by their names. */
export function valuesOf(contract: Contract, world: World) {
  const of = (schema: Schema, name: string, depth: number): fc.Arbitrary<Json> => {
    const told = contract.resolve(schema);
    const choices: Schema[] | undefined = told.anyOf ?? told.oneOf;
    if (depth > MAX_DEPTH) return fc.constant(told.type === 'array' ? [] : told.type === 'object' ? {} : 'deep');
    if (choices) return fc.oneof(...choices.map((choice) => of(choice, name, depth + 1)));
    if (told.const !== undefined) return fc.constant(told.const);
    if (told.enum) return fc.constantFrom(...told.enum);
    const types: string[] = [told.type ?? 'any'].flat();
    return fc.oneof(...types.map((type) => ofType(type, told, name, depth)));
  };
  const ofType = (type: string, told: Schema, name: string, depth: number): fc.Arbitrary<Json> => {
    switch (type) {
      case 'null':
        return fc.constant(null);
      case 'boolean':
        return fc.boolean();
      case 'integer':
        return fc.oneof(
          fc.integer({ min: told.minimum ?? 0, max: Math.min(told.maximum ?? 1000, (told.minimum ?? 0) + 1000) }),
          fc.constantFrom(told.minimum ?? 0, told.maximum ?? 2 ** 31),
        );
      case 'number':
        return fc.double({ noNaN: true, noDefaultInfinity: true, min: told.minimum, max: told.maximum });
      case 'string':
        return textOf(told, name, world);
      case 'array':
        return fc.array(of(told.items ?? {}, name, depth + 1), {
          minLength: told.minItems ?? 0,
          maxLength: Math.max(told.minItems ?? 0, Math.min(told.maxItems ?? MAX_ITEMS, MAX_ITEMS)),
        });
      case 'object':
        return objectOf(told, depth);
      default:
        return fc.oneof(fc.jsonValue({ maxDepth: 2 }), JUNK);
    }
  };
  const objectOf = (told: Schema, depth: number): fc.Arbitrary<Json> => {
    const properties = Object.entries<Schema>(told.properties ?? {});
    if (properties.length === 0) {
      const values = of(typeof told.additionalProperties === 'object' ? told.additionalProperties : {}, '', depth + 1);
      return fc.dictionary(fc.constantFrom('rows', 'seed', 'path', 'format', 'event', 'x'), values, { maxKeys: 3 });
    }
    const requiredKeys = (told.required ?? []) as string[];
    const shape = Object.fromEntries(properties.map(([key, value]) => [key, of(value, key, depth + 1)]));
    // One of three optional keys is present, so that some objects are small enough to be accepted.
    return fc
      .tuple(fc.record(shape), fc.array(fc.nat(2), { minLength: properties.length, maxLength: properties.length }))
      .map(([all, dice]) =>
        Object.fromEntries(
          Object.entries(all).filter(([key], index) => requiredKeys.includes(key) || dice[index] === 0),
        ),
      );
  };
  return (schema: Schema, name = '') => of(schema, name, 0);
}

function textOf(told: Schema, name: string, world: World): fc.Arbitrary<string> {
  const known = world[name] ?? world[name.replace(/s$/, '')];
  const free = freeText(told, name);
  return known ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...known) }, free) : free;
}

function freeText(told: Schema, name: string): fc.Arbitrary<string> {
  const day = fc.date({ min: new Date('2025-12-01'), max: new Date('2026-12-31'), noInvalidDate: true });
  switch (told.format) {
    case 'uuid':
      return fc.oneof(fc.uuid(), fc.constant(UNKNOWN));
    case 'date':
      return fc.oneof(
        day.map((date) => date.toISOString().slice(0, 10)),
        fc.constantFrom('1000-01-01', '9998-12-31'),
      );
    case 'date-time':
      return day.map((date) => date.toISOString());
    case 'email':
      return fc.uuid().map((id) => `${id}@example.test`);
    case 'uri':
      return fc.webUrl();
  }
  if (told.pattern) return fc.stringMatching(new RegExp(told.pattern), { maxLength: 80 });
  if (name === 'timezone') return fc.constantFrom('UTC', 'Europe/Berlin', 'Mars/Olympus');
  if (name === 'rule')
    return fc.constantFrom('event == "connection_failed"', 'retry_count > 3', '1 +', 'x.matches("a")');
  const minLength = told.minLength ?? 0;
  const maxLength = Math.max(minLength, Math.min(told.maxLength ?? 40, 40));
  const plain = fc.string({ minLength, maxLength });
  return fc.oneof(plain, fc.string({ unit: 'grapheme', minLength, maxLength }), fc.uuid());
}

/** The value with one error: a missing key, an extra key, or another value in one place. */
export const nearly = (values: fc.Arbitrary<Json>): fc.Arbitrary<Json> =>
  fc.tuple(values, fc.nat(), fc.constantFrom('replace', 'remove', 'add'), JUNK).map(([value, place, kind, junk]) => {
    const copy: Json = structuredClone(value);
    const holders = objectsIn(copy);
    const holder = holders[place % Math.max(1, holders.length)];
    if (holder === undefined) return junk;
    const keys = Object.keys(holder);
    const key = keys[place % Math.max(1, keys.length)];
    if (kind === 'add' || key === undefined) holder.unexpected = junk;
    else if (kind === 'remove') delete holder[key];
    else holder[key] = junk;
    return copy;
  });

function objectsIn(value: Json): Json[] {
  if (typeof value !== 'object' || value === null) return [];
  return [value, ...Object.values(value).flatMap(objectsIn)];
}
