import { type Document, isMap, LineCounter, type Node, parseDocument, visit } from 'yaml';
import { UsageError } from '../exit.ts';
import type { TextFile } from '../read-document.ts';
import { type Body, KEYS, type Kind, KINDS } from '../../pipeline-file/keys.ts';
import { variable } from '../settings.ts';

export type Path = (string | number)[];

/** One item of the file. */
export interface Wanted {
  kind: Kind;
  name: string;
  body: Body;
  /** The owner that its file names. */
  owner: string | null;
  /** `file:line:column` of a path in the item, or of its nearest parent in the file. */
  at(path?: Path): string;
}

interface Read {
  document: Document.Parsed;
  at(path: Path): string;
  problems: string[];
}

/** What the files say, and whose items they are: an entry for each file. */
export interface Pipelines {
  wanted: Wanted[];
  owners: (string | null)[];
}

/** Reads the items of several files. @throws UsageError for a name in two files, and as `readPipelines`. */
export function readAllPipelines(files: TextFile[]): Pipelines {
  const read = files.map(({ path, text }) => readFile(text, path));
  const all = read.flatMap(({ wanted }) => wanted);
  const seen = new Map<string, Wanted>();
  for (const one of all) {
    const key = `${one.kind} ${one.name.toLowerCase()}`;
    const first = seen.get(key);
    if (first) throw new UsageError(`${one.at()}: duplicate name "${one.name}", also at ${first.at()}`);
    seen.set(key, one);
  }
  return { wanted: all, owners: read.map(({ owner }) => owner) };
}

/** Reads every item of the file. @throws UsageError listing every problem with file, line and column. */
export const readPipelines = (text: string, file: string): Wanted[] => readFile(text, file).wanted;

function readFile(text: string, file: string): { wanted: Wanted[]; owner: string | null } {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  const problems = document.errors.map(({ pos, message }) => `${place(pos[0])}: ${message.split('\n')[0]}`);
  if (problems.length > 0) throw new UsageError(problems.join('\n'));
  const at = (path: Path) => place(nearest(document, path)?.range?.[0] ?? 0);
  fillIn(document, { place, problems });
  const read = { document, at, problems };
  const owner = ownerOf(read);
  const wanted = checkTop(read) ? KINDS.flatMap((kind) => ofKind(read, { kind, owner })) : [];
  if (problems.length > 0) throw new UsageError(problems.join('\n'));
  return { wanted, owner };
}

/** Replaces `${NAME}` by the environment variable and `$${` by a literal `${`. */
function fillIn(document: Document.Parsed, { place, problems }: { place(offset: number): string; problems: string[] }) {
  visit(document, {
    Scalar: (key, node) => {
      if (key === 'key' || typeof node.value !== 'string') return;
      node.value = node.value.replaceAll(/\$\$\{|\$\{([^}]*)\}/g, (whole, name?: string) => {
        if (whole === '$${') return '${';
        const value = name && /^\w+$/.test(name) ? variable(name) : undefined;
        if (value === undefined)
          problems.push(`${place(node.range?.[0] ?? 0)}: the environment variable ${name || '(no name)'} is not set`);
        return value ?? '';
      });
    },
  });
}

function checkTop({ document, at, problems }: Read): boolean {
  if (document.contents === null) return true;
  if (!isMap(document.contents)) {
    problems.push(`${at([])}: expected an object with ${KINDS.join(', ')}`);
    return false;
  }
  for (const key of Object.keys(document.toJS())) {
    if (key === 'owner' || (key === 'version' && document.get('version') === 1)) continue;
    if (KINDS.includes(key as Kind)) continue;
    problems.push(`${at([key])}: unknown key "${key}". Valid keys: version (1), owner, ${KINDS.join(', ')}`);
  }
  return true;
}

function ownerOf({ document, at, problems }: Read): string | null {
  const owner: unknown = isMap(document.contents) ? document.get('owner') : undefined;
  if (owner === undefined) return null;
  if (typeof owner === 'string' && owner.trim() !== '') return owner.trim();
  problems.push(`${at(['owner'])}: owner is the name of who keeps the file, such as data-team`);
  return null;
}

function ofKind(read: Read, { kind, owner }: { kind: Kind; owner: string | null }): Wanted[] {
  const { document, at, problems } = read;
  const all: unknown = document.toJS()?.[kind];
  if (all == null) return [];
  if (typeof all !== 'object' || Array.isArray(all)) {
    problems.push(`${at([kind])}: expected ${kind} by name, "name: {…}"`);
    return [];
  }
  const seen = new Set<string>();
  return Object.entries(all).flatMap(([name, body]) => {
    if (seen.has(name.toLowerCase())) problems.push(`${at([kind, name])}: duplicate name "${name}"`);
    seen.add(name.toLowerCase());
    if (!checkKeys(read, { kind, name, body })) return [];
    // Users and roles are never deleted, so nobody owns them.
    const isOwned = owner !== null && kind !== 'roles' && kind !== 'users';
    const whole = isOwned ? { ...(body as Body), owner } : (body as Body);
    return [{ kind, name, body: whole, owner, at: (path: Path = []) => at([kind, name, ...path]) }];
  });
}

function checkKeys({ at, problems }: Read, { kind, name, body }: { kind: Kind; name: string; body: unknown }): boolean {
  if (body === null || typeof body !== 'object' || Array.isArray(body)) {
    problems.push(`${at([kind, name])}: "${name}" is empty. Required keys: ${KEYS[kind].required.join(', ')}`);
    return false;
  }
  const { required, optional } = KEYS[kind];
  const known = [...required, ...optional];
  for (const key of Object.keys(body)) {
    if (!known.includes(key))
      problems.push(`${at([kind, name, key])}: unknown key "${key}". Valid keys: ${known.join(', ')}`);
  }
  for (const key of required) {
    if (!(key in body)) problems.push(`${at([kind, name])}: "${name}" has no ${key}`);
  }
  return true;
}

/** The node of the key rather than of its value: errors point at the key. */
function nearest(document: Document.Parsed, path: Path): Node | null {
  for (let length = path.length; length > 0; length--) {
    const parent = length === 1 ? document.contents : document.getIn(path.slice(0, length - 1), true);
    const last = path[length - 1];
    if (isMap(parent)) {
      const pair = parent.items.find(({ key }) => String((key as { value?: unknown })?.value ?? key) === String(last));
      if (pair) return pair.key as Node;
    }
    const node = document.getIn(path.slice(0, length), true);
    if (node) return node as Node;
  }
  return document.contents;
}
