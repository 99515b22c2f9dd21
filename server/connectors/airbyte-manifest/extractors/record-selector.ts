import { DataError } from '../../contract/errors.ts';
import { type ApiRecord, recordsOf } from '../../kits/rest/records.ts';
import type { RecordSelector, SyncTransformation, Transformation } from '../components/record-components.ts';
import { allAtPath, atPath } from '../interpolation/dpath.ts';
import type { Interpolation } from '../interpolation/template.ts';
import { isMapping } from '../interpolation/values.ts';
import { inPython, type PythonSession } from '../python/session.ts';
import { pythonSlice } from '../python/wire.ts';
import { transform } from '../transformations/transformations.ts';

interface Transforming extends Interpolation {
  transformations: Transformation[];
  /** What custom components run in. */
  python: PythonSession | null;
}

export interface Selecting extends Transforming {
  selector: RecordSelector;
  /** The JSON schema of the stream, for a normalization in Python. */
  schema(): Promise<Record<string, unknown>>;
}

export interface Extracted {
  /** Before the record filter. */
  records: ApiRecord[];
  /** What the path leads to; undefined: nothing, in any body. */
  found: unknown;
}

/** The records of a response, by a custom component. */
export async function extractBy(
  { python }: Selecting,
  component: unknown,
  seen: Record<string, unknown>,
): Promise<Extracted> {
  const records = recordsOf(await inPython(python).call(component, 'extract', [seen]));
  return { records, found: records };
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

export const recordPath = ({ selector: { extractor }, templates, scope }: Selecting): string[] =>
  extractor.type === 'PythonExtractor' ? [] : extractor.field_path.map((part) => templates.text(part, scope) ?? part);

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

/** The records that pass the filter, after the transformations and a normalization in Python. */
export async function select(selecting: Selecting, records: ApiRecord[]): Promise<Selected> {
  const { selector, python, schema } = selecting;
  const selected = await chosen(selecting, records);
  const normalization = selector.schema_normalization;
  if (typeof normalization !== 'object' || normalization === null || selected.records.length === 0) return selected;
  const isLast = selected.records.at(-1) === selected.last;
  const args = [selected.records, await schema()];
  const done = (await inPython(python).call(normalization.component, 'normalize', args)) as ApiRecord[];
  return { records: done, last: isLast ? (done.at(-1) ?? null) : selected.last };
}

async function chosen(selecting: Selecting, records: ApiRecord[]): Promise<Selected> {
  const { selector, transformations } = selecting;
  if (selector.transform_before_filtering) {
    const all = await transformed(selecting, records);
    return { records: await filtered(selecting, all), last: all.at(-1) ?? null };
  }
  const kept = await filtered(selecting, records);
  const last = records.at(-1);
  const isKept = last !== undefined && kept.at(-1) === last;
  const done = await transformed(selecting, kept);
  if (last === undefined || isKept) return { records: done, last: done.at(-1) ?? null };
  return { records: done, last: transformations.length > 0 ? await dropped(last, selecting) : last };
}

/** A record that the filter drops may lack what the transformations need. */
async function dropped(record: ApiRecord, selecting: Selecting): Promise<ApiRecord> {
  try {
    return (await transformed(selecting, [{ ...record }]))[0] ?? record;
  } catch (error) {
    if (error instanceof DataError) return record;
    throw error;
  }
}

/** All transformations in order. One in Python takes all records at once. */
export async function transformed(selecting: Transforming, records: ApiRecord[]): Promise<ApiRecord[]> {
  const { scope, python } = selecting;
  let known = records;
  let rest = selecting.transformations;
  while (rest.length > 0 && known.length > 0) {
    const at = rest.findIndex((one) => one.type === 'PythonTransformation');
    const before = (at < 0 ? rest : rest.slice(0, at)) as SyncTransformation[];
    const custom = rest[at];
    if (before.length > 0) known = known.map((one) => transform(one, { ...selecting, transformations: before }));
    if (custom?.type !== 'PythonTransformation') break;
    const { component } = custom;
    const args = [known, scope.stream_state, pythonSlice(scope)];
    known = (await inPython(python).call(component, 'transform', args)) as ApiRecord[];
    rest = rest.slice(at + 1);
  }
  return known;
}

async function filtered(selecting: Selecting, records: ApiRecord[]): Promise<ApiRecord[]> {
  const { selector, templates, scope, python } = selecting;
  const filter = selector.record_filter;
  if (filter?.type === 'PythonFilter') {
    if (records.length === 0) return records;
    const { next_page_token, stream_state } = scope;
    const args = [records, stream_state, pythonSlice(scope), next_page_token];
    return (await inPython(python).call(filter.component, 'filter', args)) as ApiRecord[];
  }
  const { condition, $parameters } = filter ?? {};
  if (!condition) return records;
  const own = $parameters ? { ...scope, parameters: $parameters } : scope;
  return records.filter((record) => templates.truth(condition, { ...own, record }));
}
