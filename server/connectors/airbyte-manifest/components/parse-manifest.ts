import { parseYaml, pathText, rememberLast } from '../../kits/rest/document.ts';
import { DeclarativeSource } from './source-components.ts';
import { plainIssues } from './issues.ts';
import { propagate, TooManyComponents } from './parameters.ts';
import { type PythonFiles, readPython } from './python-source.ts';
import { withPython } from './with-python.ts';
import { expandedSize, isObject, type Json, type JsonObject, ReferenceError, resolveReferences } from './references.ts';

/** Number of values in the document, with shared parts counted each time. */
const MAX_EXPANDED_SIZE = 5_000_000;

export interface Unsupported {
  /** `streams[2].retriever.requester` */
  place: string;
  what: string;
}

export interface Manifest {
  /** The source without unsupported streams; null when other parts are unsupported too. */
  source: DeclarativeSource | null;
  specification: Record<string, unknown> | null;
  /** `spec.advanced_auth`, not validated. */
  advanced_auth: unknown;
  /** `spec.documentation_url`, not validated. */
  documentation_url: string | null;
  /** In the order of the document. */
  unsupported: Unsupported[];
  /** Names of the streams that are left out. */
  left_out: string[];
}
export type ParsedManifest = { manifest: Manifest; problem: null } | { manifest: null; problem: string };

/**
 * Reads a manifest in YAML or JSON. The problem says why it is not a manifest at all; unsupported features are listed in
 * the manifest.
 * @param files null: it has none
 */
export function parseManifest(text: string, files: PythonFiles | null = null): ParsedManifest {
  return parsed(JSON.stringify([text, files]));
}

const parsed = rememberLast((key: string): ParsedManifest => {
  const [text, files] = JSON.parse(key) as [string, PythonFiles | null];
  const { document, problem } = parseYaml(text, { lenient: true });
  if (!document) return refuse(problem);
  const value = document.value as Json;
  if (!isObject(value) || !Array.isArray(value.streams ?? value.dynamic_streams)) {
    return refuse('Not a manifest: expected an object of type DeclarativeSource with streams');
  }
  try {
    const resolved = resolveReferences({ type: 'DeclarativeSource', ...value });
    const { definitions: _, schemas: __, metadata: ___, ...source } = resolved;
    if (expandedSize(source) > MAX_EXPANDED_SIZE)
      return refuse('The references of the document expand to too many values');
    const python = files === null ? null : readPython(files);
    return { manifest: understand(withPython(propagate(source), python)), problem: null };
  } catch (error) {
    if (error instanceof ReferenceError || error instanceof TooManyComponents) return refuse(error.message);
    if (error instanceof RangeError) return refuse('The document is nested too deeply');
    throw error;
  }
});

function refuse(problem: string): ParsedManifest {
  return { manifest: null, problem };
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
    what: messageOf(document, path, message),
  }));
  const { rest, left_out } = withoutUnsupported(document, issues);
  const usable = result.success ? result : DeclarativeSource.safeParse(rest);
  const isEmpty = LISTS.every((list) => !(usable.data?.[list].length ?? 0));
  const { advanced_auth, documentation_url: documentation } = isObject(document.spec) ? document.spec : {};
  return {
    source: usable.success && !isEmpty ? usable.data : null,
    advanced_auth,
    documentation_url: typeof documentation === 'string' ? documentation : null,
    specification,
    unsupported,
    left_out,
  };
}

/** The document without the streams that have issues. */
function withoutUnsupported(document: JsonObject, issues: { path: PropertyKey[] }[]) {
  const rest = { ...document };
  const left_out: string[] = [];
  for (const list of LISTS) {
    const all = document[list];
    if (!Array.isArray(all)) continue;
    const unsupported = new Set(
      issues.filter(({ path }) => path[0] === list && path.length > 1).map(({ path }) => path[1]),
    );
    rest[list] = all.filter((_, index) => !unsupported.has(index));
    left_out.push(...all.filter((_, index) => unsupported.has(index)).map(nameOf));
  }
  return { rest, left_out };
}

const nameOf = (stream: Json) => (isObject(stream) && typeof stream.name === 'string' ? stream.name : '?');

const placeOf = (path: readonly PropertyKey[]) =>
  pathText(path.filter((name, at) => name !== 'type' || at < path.length - 1));

/** Names a component by its type, and a custom one by its class too. */
function messageOf(document: Json, path: readonly PropertyKey[], message: string): string {
  const at = path.at(-1) === 'type' ? path.slice(0, -1) : path;
  const value = at.reduce<Json | undefined>(
    (node, part) => (node as Record<PropertyKey, Json> | undefined)?.[part],
    document,
  );
  if (!isObject(value)) return value === undefined ? `${message}: it is missing` : message;
  const type = typeof value.type === 'string' ? value.type : 'a component without a type';
  const known = path.at(-1) === 'type' || message === 'Invalid input';
  if (!known) return message;
  const name = typeof value.class_name === 'string' ? ` (${value.class_name})` : '';
  const why = typeof value.$problem === 'string' ? `: ${value.$problem}` : '';
  return `${type}${name} is not supported${why}`;
}
