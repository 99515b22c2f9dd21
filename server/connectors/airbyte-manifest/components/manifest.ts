import { LineCounter, parseDocument } from 'yaml';
import { DeclarativeSource } from './source-components.ts';
import { plainIssues } from './issues.ts';
import { propagate, TooManyComponents } from './parameters.ts';
import { expandedSize, isObject, type Json, type JsonObject, ReferenceError, resolveReferences } from './references.ts';

/** Aliases can make a small document a huge one. */
const MOST_ALIASES = 100;
/** What walking through the document may take, shared parts counted each time. */
const LARGEST = 5_000_000;

export interface Unsupported {
  /** `streams[2].retriever.requester` */
  place: string;
  what: string;
}

export interface Manifest {
  /** The source without the streams that need what is not supported; null when the rest does too. */
  source: DeclarativeSource | null;
  specification: Record<string, unknown> | null;
  /** Every place, in the order of the document. */
  unsupported: Unsupported[];
  /** Streams that are left out, by name. */
  left_out: string[];
}
export type ParsedManifest = { manifest: Manifest; problem: null } | { manifest: null; problem: string };

let last: { text: string; parsed: ParsedManifest } | null = null;

/** Reads a manifest in YAML or JSON. The problem says why it is none at all; what is not supported stands in the manifest. */
export function parseManifest(text: string): ParsedManifest {
  if (last?.text !== text) last = { text, parsed: parse(text) };
  return last.parsed;
}

const refuse = (problem: string): ParsedManifest => ({ manifest: null, problem });

function parse(text: string): ParsedManifest {
  const lines = new LineCounter();
  let document: Json;
  try {
    const parsed = parseDocument(text, { lineCounter: lines, prettyErrors: false });
    const [broken] = parsed.errors;
    if (broken) return refuse(`Line ${lines.linePos(broken.pos[0]).line}: ${broken.message}`);
    document = parsed.toJS({ maxAliasCount: MOST_ALIASES }) as Json;
  } catch (error) {
    return refuse(error instanceof RangeError ? 'The document nests too deeply' : 'The document has too many aliases');
  }
  if (!isObject(document) || !Array.isArray(document.streams ?? document.dynamic_streams)) {
    return refuse('This is no manifest: an object with type DeclarativeSource and streams is needed');
  }
  try {
    const whole = resolveReferences({ type: 'DeclarativeSource', ...document });
    const { definitions: _, schemas: __, metadata: ___, ...source } = whole;
    if (expandedSize(source) > LARGEST) return refuse('The references of the document unfold to more than can be read');
    return { manifest: understand(propagate(source)), problem: null };
  } catch (error) {
    if (error instanceof ReferenceError || error instanceof TooManyComponents) return refuse(error.message);
    if (error instanceof RangeError) return refuse('The document nests too deeply');
    throw error;
  }
}

const LISTS = ['streams', 'dynamic_streams'] as const;

function understand(document: JsonObject): Manifest {
  const result = DeclarativeSource.safeParse(document);
  const specification =
    isObject(document.spec) && isObject(document.spec.connection_specification)
      ? document.spec.connection_specification
      : null;
  const issues = result.success ? [] : result.error.issues.flatMap((issue) => plainIssues(issue));
  const unsupported = issues.map(({ path, message }) => ({
    place: placeOf(path),
    what: wordsOf(document, path, message),
  }));
  const { rest, left_out } = withoutThose(document, issues);
  const usable = result.success ? result : DeclarativeSource.safeParse(rest);
  const isEmpty = LISTS.every((list) => !(usable.data?.[list].length ?? 0));
  return { source: usable.success && !isEmpty ? usable.data : null, specification, unsupported, left_out };
}

/** The document without the streams that something was said against. */
function withoutThose(document: JsonObject, issues: { path: PropertyKey[] }[]) {
  const rest = { ...document };
  const left_out: string[] = [];
  for (const list of LISTS) {
    const all = document[list];
    if (!Array.isArray(all)) continue;
    const bad = new Set(issues.filter(({ path }) => path[0] === list && path.length > 1).map(({ path }) => path[1]));
    rest[list] = all.filter((_, index) => !bad.has(index));
    left_out.push(...all.filter((_, index) => bad.has(index)).map(nameOf));
  }
  return { rest, left_out };
}

const nameOf = (stream: Json) => (isObject(stream) && typeof stream.name === 'string' ? stream.name : '?');

const placeOf = (path: readonly PropertyKey[]) =>
  path
    .filter((part, at) => part !== 'type' || at < path.length - 1)
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '') || 'the document';

/** A component is called by its type, somebody's Python by its class too. */
function wordsOf(document: Json, path: readonly PropertyKey[], message: string): string {
  const at = path.at(-1) === 'type' ? path.slice(0, -1) : path;
  const value = at.reduce<Json | undefined>(
    (node, part) => (node as Record<PropertyKey, Json> | undefined)?.[part],
    document,
  );
  if (!isObject(value)) return value === undefined ? `${message}: it is missing` : message;
  const type = typeof value.type === 'string' ? value.type : 'a component without a type';
  const known = path.at(-1) === 'type' || message === 'Invalid input';
  return known
    ? `${type}${typeof value.class_name === 'string' ? ` (${value.class_name})` : ''} is not supported`
    : message;
}
