import { CDK_NAMES, LIBRARIES, STANDARD_MODULES } from './python-kinds.ts';

interface Definition {
  /** Its bases, when it is a class. */
  bases: string[] | null;
  methods: ReadonlySet<string>;
  /** Of everything in it. */
  words: ReadonlySet<string>;
  text: string;
}

/** Where an imported name comes from. */
type Import =
  | { kind: 'missing'; what: string }
  | { kind: 'own'; module: string; name: string }
  | { kind: 'library'; module: string }
  | { kind: 'base'; name: string };

interface Module {
  definitions: ReadonlyMap<string, Definition>;
  imports: ReadonlyMap<string, Import>;
}

/** What the Python files of a connector say about themselves, without running them. By name, such as `components.auth`. */
export type PythonSource = ReadonlyMap<string, Module>;

/** The files of a connector, by their path in its package. */
export type PythonFiles = Readonly<Record<string, string>>;

const wordsOf = (text: string): ReadonlySet<string> => new Set(text.match(/[A-Za-z_]\w*/g) ?? []);
const moduleName = (path: string) =>
  path
    .replace(/\.py$/, '')
    .replace(/(^|\/)__init__$/, '')
    .replaceAll('/', '.');

export function readPython(files: PythonFiles): PythonSource {
  const paths = Object.keys(files).filter((path) => path.endsWith('.py'));
  const names = new Set(paths.map(moduleName));
  return new Map(paths.map((path) => [moduleName(path), readModule(path, files[path] ?? '', names)]));
}

function readModule(path: string, text: string, names: ReadonlySet<string>): Module {
  const definitions = new Map<string, Definition>();
  const imports = new Map<string, Import>();
  const folder = path.split('/').slice(0, -1);
  for (const block of topLevel(text)) {
    const [, name, bases = ''] = /^class (\w+)(?:\(([^)]*)\))?:/m.exec(block) ?? [];
    if (name !== undefined) {
      const all = bases.split(',').map((base) => base.trim().split('.').at(-1) ?? '');
      const methods = new Set(Array.from(block.matchAll(/^\s+(?:async )?def (\w+)/gm), ([, method = '']) => method));
      definitions.set(name, { bases: all.filter((one) => one !== ''), methods, words: wordsOf(block), text: block });
    } else if (/^(from|import) /.test(block)) {
      for (const [local, found] of importsIn(block, { folder, names })) imports.set(local, found);
    } else {
      const other = /^(?:async )?(?:def )?(\w+)/m.exec(block)?.[1];
      if (other !== undefined)
        definitions.set(other, { bases: null, methods: new Set(), words: wordsOf(block), text: block });
    }
  }
  return { definitions, imports };
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

interface Place {
  /** Of the file. */
  folder: string[];
  /** All modules of the connector. */
  names: ReadonlySet<string>;
}

function importsIn(statement: string, place: Place): [local: string, found: Import][] {
  const flat = statement
    .replaceAll(/#[^\n]*/g, '')
    .replaceAll(/[\s()\\]+/g, ' ')
    .trim();
  const [, module = '', list = ''] = /^from (\S+) import (.*)$/.exec(flat) ?? [];
  const items = (module === '' ? flat.replace(/^import /, '') : list).split(',').map((item) => item.trim());
  return items.flatMap((item): [string, Import][] => {
    const [name = '', , alias] = item.split(' ');
    if (name === '') return [];
    if (module === '') return [[alias ?? name.split('.')[0] ?? '', wholeModule(name)]];
    return [[alias ?? name, fromModule(module, name, place)]];
  });
}

function wholeModule(name: string): Import {
  const root = name.split('.')[0] ?? '';
  if (LIBRARIES.has(name)) return { kind: 'library', module: root };
  return STANDARD_MODULES.has(root) ? { kind: 'base', name } : { kind: 'missing', what: name };
}

function fromModule(module: string, name: string, { folder, names }: Place): Import {
  const root = module.split('.')[0] ?? '';
  const what = `${module}.${name}`;
  const own = ownModule(module, folder);
  if (own !== null) {
    const below = own === '' ? name : `${own}.${name}`;
    if (names.has(below)) return { kind: 'own', module: below, name: '' };
    return names.has(own) ? { kind: 'own', module: own, name } : { kind: 'missing', what };
  }
  const known =
    LIBRARIES.get(module)?.has(name) ?? (root === 'airbyte_cdk' ? CDK_NAMES.has(name) : STANDARD_MODULES.has(root));
  return known ? { kind: 'base', name } : { kind: 'missing', what };
}

/** The module of the connector that an import names; null: it names another one. */
function ownModule(module: string, folder: string[]): string | null {
  const [first = '', ...rest] = module.split('.');
  if (first.startsWith('source_')) return rest.join('.');
  const dots = /^\.+/.exec(module)?.[0].length ?? 0;
  if (dots === 0) return null;
  const name = module.slice(dots);
  return [...folder.slice(0, folder.length - dots + 1), ...(name === '' ? [] : [name])].join('.');
}

export interface PythonUse {
  /** What the class and everything that it uses do not have here; null: nothing. */
  missing: string | null;
  /** The names of all classes that it extends, those of the CDK too. */
  bases: ReadonlySet<string>;
  methods: ReadonlySet<string>;
}

/** Where a class stands: the manifest may name the module of a single file as it likes. Null: nowhere. */
function placeOf(source: PythonSource, class_name: string): { module: string; name: string } | null {
  const parts = class_name.split('.');
  const name = parts.pop() ?? '';
  const own = (parts[0]?.startsWith('source_') ? parts.slice(1) : parts).join('.');
  const module = source.has(own) || !source.has('components') ? own : 'components';
  return follow(source, module, name);
}

/** The file that defines a name, which another may import. */
function follow(source: PythonSource, module: string, name: string): { module: string; name: string } | null {
  const found = source.get(module);
  if (found?.definitions.has(name)) return { module, name };
  const from = found?.imports.get(name);
  return from?.kind === 'own' && from.module !== module ? follow(source, from.module, from.name) : null;
}

/** What a class uses; null: there is none of this name. */
export function usesOf(source: PythonSource, class_name: string): PythonUse | null {
  const place = placeOf(source, class_name);
  return place === null ? null : new Walk(source).from(place.module, place.name);
}

class Walk {
  readonly #seen = new Set<string>();
  readonly #bases = new Set<string>();
  readonly #methods = new Set<string>();
  #missing: string | null = null;

  constructor(private readonly source: PythonSource) {}

  from(module: string, name: string): PythonUse {
    this.#inherit(module, name);
    this.#visit(module, name);
    return { missing: this.#missing, bases: this.#bases, methods: this.#methods };
  }

  #inherit(module: string, name: string): void {
    const place = follow(this.source, module, name);
    const found = place && this.source.get(place.module)?.definitions.get(place.name);
    if (!place || !found || this.#bases.has(`${place.module}.${place.name}`)) return;
    this.#bases.add(`${place.module}.${place.name}`);
    for (const method of found.methods) this.#methods.add(method);
    for (const base of found.bases ?? []) {
      const from = this.source.get(place.module)?.imports.get(base);
      if (from?.kind === 'base') this.#bases.add(from.name);
      else this.#inherit(place.module, base);
    }
  }

  #visit(module: string, name: string): void {
    const key = `${module}.${name}`;
    if (this.#missing !== null || this.#seen.has(key)) return;
    this.#seen.add(key);
    const file = this.source.get(module);
    const found = file?.definitions.get(name);
    if (!file || !found) return;
    for (const word of found.words) {
      const from = file.imports.get(word);
      if (from?.kind === 'missing') this.#missing ??= from.what;
      else if (from?.kind === 'library') this.#missing ??= missingOf(from.module, word, found.text);
      else if (from?.kind === 'own') this.#visitImported(from);
      else if (file.definitions.has(word)) this.#visit(module, word);
    }
  }

  #visitImported(from: Extract<Import, { kind: 'own' }>): void {
    const { module, name } = from;
    if (name === '') {
      for (const one of this.source.get(module)?.definitions.keys() ?? []) this.#visit(module, one);
      return;
    }
    const place = follow(this.source, module, name);
    if (place) this.#visit(place.module, place.name);
    else {
      const imported = this.source.get(module)?.imports.get(name);
      if (imported === undefined || imported.kind === 'missing')
        this.#missing ??= imported?.what ?? `${module}.${name}`;
    }
  }
}

/** A name that code asks a library for and that the sandbox does not have. */
function missingOf(module: string, local: string, text: string): string | null {
  const known = LIBRARIES.get(module);
  for (const [, name = ''] of text.matchAll(new RegExp(`(?<![\\w.])${local}\\.(\\w+)`, 'g')))
    if (!known?.has(name)) return `${module}.${name}`;
  return null;
}
