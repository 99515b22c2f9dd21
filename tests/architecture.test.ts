import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const ROOT = join(import.meta.dir, '..');
const TOP_LEVEL = [
  'LICENSE',
  'README.md',
  'bun.lock',
  'bunfig.toml',
  'client',
  'db',
  'package.json',
  'server',
  'tests',
  'tsconfig.json',
];
const IGNORED = ['node_modules', '.git', '.data'];
const MAX_FILES = 25;
const WARN_LINES = 400;
const MAX_LINES = 600;

/** From the bottom up: a room imports itself and the rooms before it. */
const ROOMS = [
  'platform',
  'db',
  'queue',
  'deps',
  'connectors',
  'pipeline',
  'events',
  'billing',
  'connector-runtime',
  'catalog',
  'runs',
  'transfer',
  'exports',
  'api',
  'automation',
  'worker',
  'resources',
  'router',
  'http',
  'process',
  'main',
  'deploy',
];

/** Which files may import a package. */
const HOMES: [what: string, imported: RegExp, home: RegExp][] = [
  ['elysia', /^elysia/, /^server\/http\//],
  ['@trpc/server', /^@trpc\/server(?!\/observable)/, /^(server\/(api\/procedure\.ts|router\.ts|http\/)|client\/)/],
  ['@trpc/client', /^@trpc\/(client|tanstack)/, /^client\//],
  ['trpc-to-openapi', /^trpc-to-openapi/, /^server\/(api\/endpoint(-meta)?\.ts|http\/)/],
  ['zod-openapi', /^zod-openapi/, /^server\/http\//],
  ['postgres.js', /^(postgres$|drizzle-orm\/postgres-js)/, /^db\//],
  ['pg-boss', /^pg-boss/, /^server\/queue\//],
  ['pg', /^pg$/, /^server\/connectors\/postgres\//],
  [
    'ssh2',
    /^ssh2/,
    /^server\/(connector-runtime\/ssh-tunnel|platform\/ssh-keys|connectors\/kits\/(ssh|files\/stores\/sftp)\/\w+)\.ts/,
  ],
  ['basic-ftp', /^basic-ftp/, /^server\/connectors\/kits\/files\/stores\/ftp\//],
  ['mysql2', /^mysql2/, /^server\/connectors\/mysql\//],
  ['DuckDB', /^@duckdb\//, /^server\/connectors\/(file|duckdb|kits\/(duckdb|files))\//],
  ['React and its libraries', /^(react|@mantine|@tanstack|wouter)/, /^client\/console\//],
  ['openid-client', /^openid-client/, /^server\/resources\/users\/sign-in\//],
  ['prom-client', /^prom-client/, /^server\/platform\/metrics\.ts/],
];

interface Import {
  /** Inside the repository by path, else the name of the package. */
  to: string;
  isType: boolean;
}

interface Source {
  path: string;
  text: string;
  imports: Import[];
}

const sources = ['server', 'client', 'db', 'tests'].flatMap(sourcesBelow);
const product = sources.filter(({ path }) => !path.startsWith('tests/'));
const server = product.filter(({ path }) => path.startsWith('server/') || path.startsWith('db/'));

describe('rooms', () => {
  const isFree = (from: string, { to, isType }: Import) => isType && to.startsWith('db/schema/') && from !== to;

  test('import only the rooms before them, types included', () => {
    const unknown = server.filter(({ path }) => !ROOMS.includes(roomOf(path))).map(({ path }) => path);
    expect(unknown).toEqual([]);
    const upward = edges(server, (from, one) => isInside(one.to) && !isFree(from, one)).filter(
      ([from, to]) => ROOMS.indexOf(roomOf(to)) > ROOMS.indexOf(roomOf(from)),
    );
    expect(upward.map(arrow)).toEqual([]);
  });

  test('have no circle of files, types and tests included', () => {
    expect(circles(edges(sources, () => true))).toEqual([]);
  });

  test('have no circle of folders', () => {
    // A file in server/ is a separate room. A folder and its content are one room.
    const folder = (path: string) => (/^server\/[\w-]+\.ts$/.test(path) ? path : dirname(path));
    const graph = edges(product, (_, { to, isType }) => !isType && isInside(to))
      .map(([from, to]): [string, string] => [folder(from), folder(to)])
      .filter(([from, to]) => !`${from}/`.startsWith(`${to}/`) && !`${to}/`.startsWith(`${from}/`));
    expect(circles(graph)).toEqual([]);
  });

  test('pipeline knows neither the database nor the process', () => {
    expect(importsFrom('server/pipeline/', /^(drizzle-orm|server\/deps\.ts)/)).toEqual([]);
  });

  test('of one resource do not import another', () => {
    const resource = (path: string) => /^server\/resources\/([\w-]+)\//.exec(path)?.[1];
    const wrong = edges(product, (from, { to }) => {
      const [mine, other] = [resource(from), resource(to)];
      return mine !== undefined && other !== undefined && other !== mine && other !== 'access';
    });
    expect(wrong.map(arrow)).toEqual([]);
  });

  test('of clients import types alone from the server', () => {
    const wrong = edges(product, (from, { to, isType }) => {
      return from.startsWith('client/') && /^(server|db)\//.test(to) && !isType;
    });
    expect(wrong.map(arrow)).toEqual([]);
  });
});

describe('connectors', () => {
  /** A connector, or a room that all connectors share. */
  const part = (path: string) => /^server\/connectors\/(kits\/[\w-]+|[\w-]+)\//.exec(path)?.[1];
  const isShared = (name: string) => name === 'contract' || name === 'cells' || name.startsWith('kits/');
  const inside = product.filter(({ path }) => part(path) !== undefined);

  test('import contract, cells and kits, never another connector', () => {
    const wrong = edges(inside, (from, { to }) => {
      const [mine, other] = [part(from) ?? '', part(to)];
      return other !== undefined && other !== mine && !isShared(other);
    });
    expect(wrong.map(arrow)).toEqual([]);
  });

  test('are loaded with their first use: nothing but the registry names them', () => {
    const wrong = edges(product, (from, { to, isType }) => {
      const connector = part(to) ?? '';
      return connector !== '' && !isShared(connector) && part(from) !== connector && !isType;
    });
    expect(wrong.map(arrow)).toEqual([]);
  });

  test('import no room but platform', () => {
    const wrong = edges(inside, (from, { to }) => {
      const isOther = isInside(to) && !to.startsWith('server/connectors/') && !to.startsWith('server/platform/');
      const isContract = from.startsWith('server/connectors/contract/') && to.startsWith('db/schema/');
      return isOther && !isContract;
    });
    expect(wrong.map(arrow)).toEqual([]);
  });

  test('share a contract that knows neither cells nor kits, and cells that know no kit', () => {
    const level = (path: string) => {
      const name = part(path) ?? '';
      return name.startsWith('kits/') ? 2 : ['contract', 'cells'].indexOf(name);
    };
    const wrong = edges(inside, (from, { to }) => isShared(part(from) ?? '') && level(to) > level(from));
    expect(wrong.map(arrow)).toEqual([]);
  });
});

describe('only one place', () => {
  test('emits events', () => {
    expect(outside(/^server\/events\//, /(?<!\.)\bemit\(/)).toEqual([]);
  });

  test('changes the status of runs and stream runs', () => {
    const drizzle =
      /\.(update|insert)\((connectionRuns|streamRuns)\)\s*\.(set|values)\((?:[^()]|\([^()]*\))*?\bstatus\b\s*[:,}]/;
    const raw = /\b(update|insert into) (connection_runs|stream_runs)\b[^`]*?\bstatus\s*=/;
    expect(outside(/^server\/runs\//, drizzle)).toEqual([]);
    expect(product.filter(({ text }) => raw.test(text)).map(({ path }) => path)).toEqual([]);
  });

  test('repeats work by the clock', () => {
    const home = /^(server\/(platform\/periodic|transfer\/attempt)\.ts$|client\/)/;
    expect(outside(home, /\bsetInterval\(/)).toEqual([]);
  });

  test('locks a row so that inserts that refer to it wait: connectors, in databases of others', () => {
    expect(outside(/^server\/connectors\//, /\.for\('update'|\bfor update\b(?!`)/)).toEqual([]);
  });

  test('declares what a row of a table is', () => {
    expect(outside(/^db\/schema\//, /\$inferSelect/)).toEqual([]);
  });

  test('reads the environment: one for the service, one for its runtime, one for the command line, one for the single file', () => {
    // Samples of code read it as text.
    const home =
      /^(client\/cli\/settings|client\/console\/as-code\/samples|server\/http\/docs\/reference\/samples|server\/platform\/(config|tune-runtime)|server\/deploy\/launcher)\.ts$/;
    expect(outside(home, /process\.env|Bun\.env|import\.meta\.env/)).toEqual([]);
  });

  test.each(HOMES)('imports %s', (_, imported, home) => {
    const users = product.filter(({ imports }) => imports.some(({ to }) => imported.test(to)));
    expect(users.map(({ path }) => path).filter((path) => !home.test(path))).toEqual([]);
  });

  test('exports a type of a given name, in each program and outside single connectors', () => {
    const program = (path: string) => /^client\/[\w-]+/.exec(path)?.[0] ?? 'server';
    const homes = product
      .filter(({ path }) => !/^server\/connectors\/(?!contract|cells|kits)[\w-]+\//.test(path))
      .flatMap(({ path, text }) =>
        [...text.matchAll(/^export (?:interface|type|class) (\w+)/gm)].map(([, name]) => ({ path, name })),
      );
    const doubled = [...Map.groupBy(homes, ({ path, name }) => `${program(path)} ${name}`)].filter(
      ([, all]) => new Set(all.map(({ path }) => path)).size > 1,
    );
    expect(doubled.map(([name, all]) => `${name}: ${all.map(({ path }) => path).join(', ')}`)).toEqual([]);
  });
});

describe('files', () => {
  test('at the top level are the agreed ones', () => {
    const present = readdirSync(ROOT).filter((name) => !name.startsWith('.') && !IGNORED.includes(name));
    expect(present.filter((name) => !TOP_LEVEL.includes(name))).toEqual([]);
  });

  test(`are at most ${MAX_FILES} in a folder`, () => {
    const folders = new Set(product.map(({ path }) => dirname(path)));
    const count = (folder: string) =>
      readdirSync(join(ROOT, folder), { withFileTypes: true }).filter((one) => one.isFile()).length;
    const full = [...folders].filter((folder) => count(folder) > MAX_FILES);
    expect(full.map((folder) => `${folder}: ${count(folder)}`)).toEqual([]);
  });

  test(`have at most ${MAX_LINES} lines`, () => {
    const lines = product.map(({ path, text }) => ({ path, lines: text.split('\n').length - 1 }));
    for (const { path, lines: count } of lines) if (count > WARN_LINES) console.warn(`${path} has ${count} lines`);
    expect(lines.filter((one) => one.lines > MAX_LINES)).toEqual([]);
  });

  test('are named in kebab-case, and after what they hold', () => {
    const vague = /(^|\/)(utils?|helpers?|common|misc|shared)(\/|\.tsx?$)/;
    const wrong = sources.filter(
      ({ path }) => vague.test(path) || !/^([a-z0-9-]+\/)*[a-z0-9-]+(\.(test|config))?\.tsx?$/.test(path),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });
});

function roomOf(path: string): string {
  return path.startsWith('db/') ? 'db' : (/^server\/([\w-]+)/.exec(path)?.[1] ?? '');
}

function isInside(path: string): boolean {
  return /^(server|db|client)\//.test(path);
}

const arrow = ([from, to]: [string, string]) => `${from} -> ${to}`;

function edges(from: Source[], wanted: (path: string, one: Import) => boolean): [from: string, to: string][] {
  return from.flatMap(({ path, imports }) =>
    imports.filter((one) => wanted(path, one)).map(({ to }): [string, string] => [path, to]),
  );
}

function importsFrom(folder: string, imported: RegExp): string[] {
  return edges(product, (path, { to }) => path.startsWith(folder) && imported.test(to)).map(arrow);
}

/** The files with `pattern` outside of `home`. Some must be there, or the rule would have no object. */
function outside(home: RegExp, pattern: RegExp): string[] {
  const found = product.filter(({ text }) => pattern.test(text)).map(({ path }) => path);
  expect(found.filter((path) => home.test(path))).not.toEqual([]);
  return found.filter((path) => !home.test(path));
}

/** The members of each strongly connected component that has more than one, found by Tarjan's algorithm. */
function circles(graph: [from: string, to: string][]): string[][] {
  const next = Map.groupBy(graph, ([from]) => from);
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (node: string): void => {
    index.set(node, index.size);
    low.set(node, index.get(node)!);
    stack.push(node);
    for (const [, to] of next.get(node) ?? []) {
      if (!index.has(to)) visit(to);
      if (stack.includes(to)) low.set(node, Math.min(low.get(node)!, low.get(to)!));
    }
    if (low.get(node) !== index.get(node)) return;
    const members = stack.splice(stack.indexOf(node));
    if (members.length > 1) found.push(members.toSorted());
  };
  for (const node of next.keys()) if (!index.has(node)) visit(node);
  return found;
}

function sourcesBelow(folder: string): Source[] {
  if (!existsSync(join(ROOT, folder))) return [];
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => {
      const path = join(folder, name);
      const text = readFileSync(join(ROOT, path), 'utf8');
      return { path, text, imports: importsOf(path, text) };
    });
}

function importsOf(path: string, text: string): Import[] {
  const statement = /^(?:import|export)\s+(type\s+)?(?:([^'";]*?)\s*from\s*)?'([^']+)'/gm;
  const direct = [...text.matchAll(statement)].map(([, type, names = '', to = '']) => ({
    to: resolve(path, to),
    isType: type !== undefined || /^\{(\s*type\s+\w+( as \w+)?\s*,?)+\s*\}$/.test(names),
  }));
  const later = [...text.matchAll(/(?<!typeof )\bimport\('([^']+)'\)/g)].map(([, to = '']) => ({
    to: resolve(path, to),
    isType: false,
  }));
  return [...direct, ...later];
}

function resolve(from: string, to: string): string {
  return to.startsWith('.') ? relative(ROOT, join(ROOT, dirname(from), to)) : to;
}
