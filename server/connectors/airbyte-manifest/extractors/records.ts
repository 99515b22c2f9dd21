import { rawNumber } from '../../cells/json-line.ts';
import type { RecordSelector, Transformation } from '../components/stream-components.ts';
import { allAtPath, atPath } from './paths.ts';
import type { Scope, Templates } from '../interpolation/template.ts';
import { isMapping } from '../interpolation/values.ts';
import { transform } from '../transformations/transform.ts';

export type ManifestRecord = Record<string, unknown>;

export interface Selecting {
  selector: RecordSelector;
  transformations: Transformation[];
  templates: Templates;
  scope: Scope;
}

/** What of an answer the records are, before filters: the list at the path, or the one thing that stands there. */
export function extract({ selector, templates, scope }: Selecting, bodies: unknown[]): ManifestRecord[] {
  const path = selector.extractor.field_path.map((part) => templates.text(part, scope) ?? part);
  return bodies.flatMap((body) => recordsAt(body, path));
}

function recordsAt(json: unknown, path: readonly string[]): ManifestRecord[] {
  const found = path.includes('*') ? allAtPath(json, path).flat() : atPath(json, path);
  if (found === null || found === undefined || found === '' || found === false) return [];
  const items: unknown[] = Array.isArray(found) ? found : [found];
  // An empty mapping is what services answer for nothing.
  if (!Array.isArray(found) && isMapping(found) && Object.keys(found).length === 0) return [];
  return items.map((item) => (isMapping(item) && rawNumber(item) === null ? item : { value: item }));
}

/** Records as the stream gives them: those that the filter lets through, changed as the manifest says. */
export function select(selecting: Selecting, records: ManifestRecord[]): ManifestRecord[] {
  const { selector, transformations } = selecting;
  const change = (some: ManifestRecord[]) =>
    transformations.length > 0 ? some.map((one) => transform(one, selecting)) : some;
  if (selector.transform_before_filtering) return kept(selecting, change(records));
  return change(kept(selecting, records));
}

function kept({ selector, templates, scope }: Selecting, records: ManifestRecord[]): ManifestRecord[] {
  const { condition, $parameters } = selector.record_filter ?? {};
  if (!condition) return records;
  const own = $parameters ? { ...scope, parameters: $parameters } : scope;
  return records.filter((record) => templates.truth(condition, { ...own, record }));
}
