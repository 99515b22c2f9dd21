import type { QueryProperties } from '../components/stream-components.ts';
import { atPath } from '../interpolation/dpath.ts';
import { pyText } from '../interpolation/python-literal.ts';
import { isMapping, truthy } from '../interpolation/values.ts';
import type { ApiRecord } from '../../kits/rest/records.ts';

/** The properties of the requests for one page: more than one chunk where the service limits them. */
export function chunksOf(
  query: QueryProperties,
  all: string[],
  selected: ReadonlySet<string> | null = null,
): string[][] {
  const always = query.always_include_properties ?? [];
  const { property_limit: limit, property_limit_type: type } = query.property_chunking ?? {};
  // Airbyte has no selection where chunks have no limit.
  if (query.property_chunking && !limit) return [[...all, ...always]];
  const properties = selected === null ? all : all.filter((name) => selected.has(name));
  if (!query.property_chunking || !limit) return [[...always, ...properties]];
  const chunks: string[][] = [];
  let chunk = [...always];
  let size = 0;
  for (const property of properties) {
    // Of characters, three more for the encoded comma.
    const own = type === 'characters' ? property.length + 3 : 1;
    if (size + own > limit) {
      chunks.push(chunk);
      [chunk, size] = [[...always], 0];
    }
    chunk.push(property);
    size += own;
  }
  return [...chunks, chunk];
}

/** The names that an endpoint lists. */
export const namesIn = (records: readonly ApiRecord[], path: readonly string[]): string[] =>
  records.map((record) => pyText(atPath(record, path) ?? ''));

/** Records of several chunks, put together by their key. Those without one stay apart. */
export function mergedByKey(key: string | string[], records: readonly ApiRecord[]): ApiRecord[] {
  const merged = new Map<string, ApiRecord>();
  const apart: ApiRecord[] = [];
  for (const record of records) {
    const values = [key].flat().map((name) => record[name]);
    if (values.every(truthy)) {
      const name = JSON.stringify(values.map(pyText));
      merged.set(name, mergeDeep(merged.get(name) ?? {}, record));
    } else apart.push(record);
  }
  return [...apart, ...merged.values()];
}

function mergeDeep(a: ApiRecord, b: ApiRecord): ApiRecord {
  const merged: ApiRecord = { ...a };
  for (const [name, value] of Object.entries(b)) {
    const known = Object.hasOwn(a, name) ? a[name] : undefined;
    merged[name] = isMapping(known) && isMapping(value) ? mergeDeep(known, value) : value;
  }
  return merged;
}
