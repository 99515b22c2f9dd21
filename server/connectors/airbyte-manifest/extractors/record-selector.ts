import { DataError } from '../../contract/errors.ts';
import { type ApiRecord, recordsOf } from '../../kits/rest/records.ts';
import type { RecordSelector, Transformation } from '../components/stream-components.ts';
import { allAtPath, atPath } from '../interpolation/dpath.ts';
import type { Interpolation } from '../interpolation/template.ts';
import { isMapping } from '../interpolation/values.ts';
import { transform } from '../transformations/transformations.ts';

export interface Selecting extends Interpolation {
  selector: RecordSelector;
  transformations: Transformation[];
}

export interface Extracted {
  /** Before the record filter. */
  records: ApiRecord[];
  /** What the path leads to; undefined: nothing, in any body. */
  found: unknown;
}

/** The records of a response: the list at the path, or the single value. */
export function extract(selecting: Selecting, bodies: unknown[]): Extracted {
  const path = recordPath(selecting);
  const wildcard = path.indexOf('*');
  const fixed = wildcard < 0 ? path : path.slice(0, wildcard);
  const all = bodies.map((body) => atPath(body, fixed));
  const records = bodies.flatMap((body) => recordsAt(body, path));
  const found = all.find((one) => one !== undefined);
  return { records, found: records.length > 0 ? records : all.length > 0 ? found : [] };
}

export const recordPath = ({ selector, templates, scope }: Selecting): string[] =>
  selector.extractor.field_path.map((part) => templates.text(part, scope) ?? part);

function recordsAt(json: unknown, path: readonly string[]): ApiRecord[] {
  const found = path.includes('*') ? allAtPath(json, path).flat() : atPath(json, path);
  if (found === '' || found === false) return [];
  // Some services return an empty object when there are no records.
  if (isMapping(found) && Object.keys(found).length === 0) return [];
  return recordsOf(found);
}

export interface Selected {
  records: ApiRecord[];
  /** The last record of the response after the transformations, even when the filter drops it. */
  last: ApiRecord | null;
}

/** The records that pass the filter, after the transformations. */
export function select(selecting: Selecting, records: ApiRecord[]): Selected {
  const { selector, transformations } = selecting;
  const transformed = (some: ApiRecord[]) =>
    transformations.length > 0 ? some.map((one) => transform(one, selecting)) : some;
  if (selector.transform_before_filtering) {
    const all = transformed(records);
    return { records: filtered(selecting, all), last: all.at(-1) ?? null };
  }
  const kept = filtered(selecting, records);
  const last = records.at(-1);
  const isKept = last !== undefined && kept.at(-1) === last;
  const done = transformed(kept);
  if (last === undefined || isKept) return { records: done, last: done.at(-1) ?? null };
  return { records: done, last: transformations.length > 0 ? dropped(last, selecting) : last };
}

/** A record that the filter drops may lack what the transformations need. */
function dropped(record: ApiRecord, selecting: Selecting): ApiRecord {
  try {
    return transform({ ...record }, selecting);
  } catch (error) {
    if (error instanceof DataError) return record;
    throw error;
  }
}

function filtered({ selector, templates, scope }: Selecting, records: ApiRecord[]): ApiRecord[] {
  const { condition, $parameters } = selector.record_filter ?? {};
  if (!condition) return records;
  const own = $parameters ? { ...scope, parameters: $parameters } : scope;
  return records.filter((record) => templates.truth(condition, { ...own, record }));
}
