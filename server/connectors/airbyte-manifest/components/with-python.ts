import { kindOf, KINDS, PARTS, type PythonKind } from './python-kinds.ts';
import { type PythonSource, usesOf } from './python-source.ts';
import { isObject, type Json, type JsonObject } from './references.ts';

const STREAMS = new Set(['DeclarativeStream', 'StateDelegatingStream']);

/**
 * Replaces custom components that the sandbox can run. The others stay as they are, with the reason, and are refused by
 * their name like everything unknown.
 * @param source null: there are no files
 */
export function withPython(document: JsonObject, source: PythonSource | null): JsonObject {
  return replaced(document, null, { source, stream: '' }) as JsonObject;
}

interface Within {
  source: PythonSource | null;
  /** The name of the stream. */
  stream: string;
}

function replaced(node: Json, field: string | null, within: Within): Json {
  if (Array.isArray(node)) return node.map((item) => replaced(item, field, within));
  if (!isObject(node)) return node;
  if (typeof node.class_name === 'string') return custom(node, node.class_name, field, within);
  const isMap = field === 'authenticators';
  const isStream = typeof node.type === 'string' && STREAMS.has(node.type);
  const below = isStream && typeof node.name === 'string' ? { ...within, stream: node.name } : within;
  return Object.fromEntries(
    Object.entries(node).map(([name, value]) => [name, replaced(value, isMap ? field : name, below)]),
  );
}

function custom(node: JsonObject, class_name: string, field: string | null, within: Within): Json {
  const { source, stream } = within;
  const kind = kindOf(field);
  if (kind === null) return node;
  if (source === null) return { ...node, $problem: 'components.py is missing' };
  const problem = problemOf(source, class_name, kind) ?? foreignPart(source, kind, node);
  if (problem !== null) return { ...node, $problem: problem };
  const rest = Object.fromEntries(Object.entries(node).map(([name, value]) => [name, replaced(value, name, within)]));
  const { extends: declared } = KINDS[kind];
  return declared === undefined
    ? { type: kind, component: rest }
    : { ...rest, type: declared, python: { name: stream, ...ownPart(node) } };
}

const OF_SERVICE = new Set(
  (
    'authenticator error_handler backoff_strategies requester record_selector paginator partition_router decoder query ' +
    'pagination_reset'
  ).split(' '),
);

/** Without what the service runs for it. */
const ownPart = (node: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(node).filter(([name]) => !OF_SERVICE.has(name)));

/** Why a class cannot run in this place; null: it can. */
function problemOf(source: PythonSource, class_name: string, kind: PythonKind): string | null {
  const name = class_name.split('.').at(-1) ?? '';
  const use = usesOf(source, class_name);
  if (use === null) return `components.py has no class ${name}`;
  if (use.missing !== null) return `the sandbox has no ${use.missing}`;
  const { bases, unused = [] } = KINDS[kind];
  if (!bases.some((base) => use.bases.has(base))) return `it extends none of ${bases.join(', ')}`;
  const own = unused.find((method) => use.methods.has(method));
  return own === undefined ? null : `the service does not call its method ${own}`;
}

/** A part of a custom component that it cannot have; null: it has none. */
function foreignPart(source: PythonSource, kind: PythonKind, node: JsonObject): string | null {
  // Its parts are those of a declared one, which are judged where they stand.
  if (kind === 'PythonRetriever') return null;
  const { type: _, class_name: __, $parameters: parameters = {}, ...all } = node;
  // Parameters of the stream are in all its components, whether they have use for them or not.
  const shared = isObject(parameters) ? parameters : {};
  const fields = Object.fromEntries(Object.entries(all).filter(([name]) => !Object.hasOwn(shared, name)));
  const known = new Set([...PARTS, ...(KINDS[kind].parts ?? [])]);
  // Those of requesters and error handlers are judged where they stand.
  const isJudged = kind === 'PythonRequester' || kind === 'PythonErrorHandler';
  const nested = (class_name: string) => {
    if (isJudged) return null;
    const problem = kind === 'PythonExtractor' ? problemOf(source, class_name, kind) : 'it is not an extractor';
    return problem === null ? null : `${class_name.split('.').at(-1)}: ${problem}`;
  };
  const found = foreignIn(fields, known, nested);
  return found === null ? null : `it contains a component ${found}`;
}

/** @param nested why it cannot contain a class; null: it can */
function foreignIn(
  node: Json,
  known: ReadonlySet<string>,
  nested: (class_name: string) => string | null,
): string | null {
  if (Array.isArray(node))
    return node.reduce<string | null>((found, one) => found ?? foreignIn(one, known, nested), null);
  if (!isObject(node)) return null;
  const { type, $parameters: _, ...fields } = node;
  if (typeof type === 'string' && STREAMS.has(type)) return null;
  if (typeof node.class_name === 'string') {
    const problem = nested(node.class_name);
    return problem ?? foreignIn(Object.values(fields), known, nested);
  }
  // Other types are values, such as the schema among the parameters.
  if (typeof type === 'string' && /^[A-Z]/.test(type) && !known.has(type)) return type;
  if (type === 'HttpRequester') return null;
  return foreignIn(Object.values(fields), known, nested);
}
