import { isObject, type Json, type JsonObject } from './references.ts';

/** Where a component in Python may stand, by the field that contains it, with the classes of the CDK that it may extend. */
const KINDS = {
  PythonTransformation: { fields: ['transformations'], bases: ['RecordTransformation', 'AddFields'] },
  PythonExtractor: { fields: ['extractor'], bases: ['RecordExtractor', 'DpathExtractor'] },
  PythonFilter: { fields: ['record_filter'], bases: ['RecordFilter'] },
  PythonAuthenticator: {
    fields: ['authenticator', 'authenticators'],
    bases: ['NoAuth', 'DeclarativeAuthenticator', 'BasicHttpAuthenticator'],
  },
  PythonRouter: {
    fields: ['partition_router'],
    bases: ['SubstreamPartitionRouter', 'StreamSlicer', 'PartitionRouter'],
  },
  PythonPagination: { fields: ['pagination_strategy'], bases: ['PaginationStrategy'] },
} as const;
export type PythonKind = keyof typeof KINDS;

/** What the sandbox's `airbyte_cdk` has. */
const CDK_NAMES = new Set(
  (
    'Config Record StreamState FieldPointer StreamSlice InterpolatedString InterpolatedBoolean Decoder JsonDecoder ' +
    'JsonlDecoder RecordExtractor DpathExtractor RecordFilter RecordTransformation AddFields AddedFieldDefinition ' +
    'DeclarativeAuthenticator NoAuth BasicHttpAuthenticator BearerAuthenticator ApiKeyAuthenticator SyncMode FailureType ' +
    'Type AirbyteMessage Stream ParentStreamConfig StreamSlicer PartitionRouter SubstreamPartitionRouter ' +
    'PaginationStrategy AirbyteTracedException AbstractHeaderAuthenticator ' +
    'DeclarativeOauth2Authenticator DeclarativeSingleUseRefreshTokenOauth2Authenticator'
  ).split(' '),
);
const MODULES = new Set(
  (
    '__future__ abc ast base64 binascii bisect calendar collections contextlib copy csv dataclasses datetime decimal ' +
    'difflib enum fractions functools hashlib heapq hmac html http io itertools json logging math numbers operator ' +
    'random re secrets statistics string struct textwrap time traceback types typing unicodedata urllib uuid warnings ' +
    'xml zlib gzip requests dpath'
  ).split(' '),
);

interface PythonClass {
  bases: string[];
  /** Of everything in it. */
  words: ReadonlySet<string>;
}

/** Components that the sandbox, or the service for it, provides to a custom one. */
const PARTS = new Set([
  'JsonDecoder',
  'JsonlDecoder',
  'DpathExtractor',
  'BasicHttpAuthenticator',
  'BearerAuthenticator',
  'ApiKeyAuthenticator',
  'OAuthAuthenticator',
  'AddedFieldDefinition',
  'ParentStreamConfig',
  'RequestOption',
]);
const STREAMS = new Set(['DeclarativeStream', 'StateDelegatingStream']);

/** A part of a custom component that it cannot have; null: it has none. */
function foreignPart(node: Json): string | null {
  if (Array.isArray(node)) return node.reduce<string | null>((found, one) => found ?? foreignPart(one), null);
  if (!isObject(node)) return null;
  const { type, $parameters: _, ...fields } = node;
  if (typeof type === 'string' && STREAMS.has(type)) return null;
  if (typeof type === 'string' && !PARTS.has(type)) return type;
  return foreignPart(Object.values(fields));
}

/** What a `components.py` says about itself, without running it. */
export interface PythonSource {
  classes: ReadonlyMap<string, PythonClass>;
  /** Other names at the top, with the words of what they are. */
  others: ReadonlyMap<string, ReadonlySet<string>>;
  /** Imported names that the sandbox does not have, with what is missing. */
  missing: ReadonlyMap<string, string>;
}

const wordsOf = (text: string): ReadonlySet<string> => new Set(text.match(/[A-Za-z_]\w*/g) ?? []);

export function readPython(text: string): PythonSource {
  const classes = new Map<string, PythonClass>();
  const others = new Map<string, ReadonlySet<string>>();
  const missing = new Map<string, string>();
  for (const block of topLevel(text)) {
    const [, name, bases = ''] = /^class (\w+)(?:\(([^)]*)\))?:/m.exec(block) ?? [];
    if (name !== undefined) {
      const names = bases.split(',').map((base) => base.trim().split('.').at(-1) ?? '');
      classes.set(name, { bases: names.filter((base) => base !== ''), words: wordsOf(block) });
    } else if (/^(from|import) /.test(block)) {
      for (const [local, what] of missingIn(block)) missing.set(local, what);
    } else {
      const other = /^(?:async )?(?:def )?(\w+)/m.exec(block)?.[1];
      if (other !== undefined) others.set(other, wordsOf(block));
    }
  }
  return { classes, others, missing };
}

/** The statements at the top of a file, with decorators. Texts over several lines stay where they are. */
function topLevel(text: string): string[] {
  const blocks: string[] = [];
  let isDecorated = false;
  for (const line of text.split('\n')) {
    const starts = /^[A-Za-z_@]/.test(line) && !isDecorated;
    if (starts || blocks.length === 0) blocks.push(line);
    else blocks[blocks.length - 1] += `\n${line}`;
    isDecorated = line.startsWith('@') || (isDecorated && !/^(class|def|async) /.test(line));
  }
  return blocks;
}

/** The names of an import that the sandbox does not have. */
function missingIn(statement: string): [local: string, what: string][] {
  const flat = statement
    .replaceAll(/#[^\n]*/g, '')
    .replaceAll(/[\s()\\]+/g, ' ')
    .trim();
  const [, module = '', list = ''] = /^from (\S+) import (.*)$/.exec(flat) ?? [];
  const items = (module === '' ? flat.replace(/^import /, '') : list).split(',').map((item) => item.trim());
  return items.flatMap((item): [string, string][] => {
    const [name = '', , alias] = item.split(' ');
    if (name === '') return [];
    const root = (module === '' ? name : module).split('.')[0] ?? '';
    const known = root === 'airbyte_cdk' ? CDK_NAMES.has(name) : MODULES.has(root);
    const whole = module === '' ? name : `${module}.${name}`;
    return known ? [] : [[alias ?? (module === '' ? root : name), whole]];
  });
}

/** Why a class cannot run in this place; null: it can. */
function problemOf(source: PythonSource, name: string, kind: PythonKind): string | null {
  if (!source.classes.has(name)) return `components.py has no class ${name}`;
  const bases: readonly string[] = KINDS[kind].bases;
  const seen = new Set<string>();
  const rest = [name];
  let isKind = false;
  for (let one = rest.pop(); one !== undefined; one = rest.pop()) {
    if (seen.has(one)) continue;
    seen.add(one);
    const found = source.classes.get(one);
    if (found?.bases.some((base) => bases.includes(base))) isKind = true;
    for (const word of found?.words ?? source.others.get(one) ?? []) {
      const what = source.missing.get(word);
      if (what !== undefined) return `the sandbox has no ${what}`;
      if (source.classes.has(word) || source.others.has(word)) rest.push(word);
    }
  }
  return isKind ? null : `it extends none of ${bases.join(', ')}`;
}

/**
 * Replaces custom components that the sandbox can run. The others stay as they are, with the reason, and are refused by
 * their name like everything unknown.
 */
export function withPython(document: JsonObject, source: PythonSource | null): JsonObject {
  return replaced(document, null, source) as JsonObject;
}

function replaced(node: Json, field: string | null, source: PythonSource | null): Json {
  if (Array.isArray(node)) return node.map((item) => replaced(item, field, source));
  if (!isObject(node)) return node;
  if (typeof node.class_name === 'string') return custom(node, node.class_name, field, source);
  const isMap = field === 'authenticators';
  return Object.fromEntries(
    Object.entries(node).map(([name, value]) => [name, replaced(value, isMap ? field : name, source)]),
  );
}

function custom(node: JsonObject, class_name: string, field: string | null, source: PythonSource | null): Json {
  const found = Object.entries(KINDS).find(([, { fields }]) => (fields as readonly string[]).includes(field ?? ''));
  if (!found) return node;
  if (source === null) return { ...node, $problem: 'components.py is missing' };
  const kind = found[0] as PythonKind;
  const { type: _, ...fields } = node;
  const foreign = foreignPart(fields);
  const own = problemOf(source, class_name.split('.').at(-1) ?? '', kind);
  const problem = own ?? (foreign === null ? null : `it contains a component ${foreign}`);
  if (problem !== null) return { ...node, $problem: problem };
  const rest = Object.fromEntries(Object.entries(node).map(([name, value]) => [name, replaced(value, name, source)]));
  return { type: kind, component: rest };
}
