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

/** The records of a response before the record filter: the list at the path, or the single value. */
export function extract({ selector, templates, scope }: Selecting, bodies: unknown[]): ApiRecord[] {
  const path = selector.extractor.field_path.map((part) => templates.text(part, scope) ?? part);
  return bodies.flatMap((body) => recordsAt(body, path));
}

function recordsAt(json: unknown, path: readonly string[]): ApiRecord[] {
  const found = path.includes('*') ? allAtPath(json, path).flat() : atPath(json, path);
  if (found === '' || found === false) return [];
  // Some services return an empty object when there are no records.
  if (isMapping(found) && Object.keys(found).length === 0) return [];
  return recordsOf(found);
}

/** The records that pass the filter, after the transformations. */
export function select(selecting: Selecting, records: ApiRecord[]): ApiRecord[] {
  const { selector, transformations } = selecting;
  const transformed = (some: ApiRecord[]) =>
    transformations.length > 0 ? some.map((one) => transform(one, selecting)) : some;
  if (selector.transform_before_filtering) return filtered(selecting, transformed(records));
  return transformed(filtered(selecting, records));
}

function filtered({ selector, templates, scope }: Selecting, records: ApiRecord[]): ApiRecord[] {
  const { condition, $parameters } = selector.record_filter ?? {};
  if (!condition) return records;
  const own = $parameters ? { ...scope, parameters: $parameters } : scope;
  return records.filter((record) => templates.truth(condition, { ...own, record }));
}
