import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const ROOT = join(import.meta.dir, '..');
const transpilers = {
  ts: new Bun.Transpiler({ loader: 'ts' }),
  tsx: new Bun.Transpiler({ loader: 'tsx' }),
};
const TOP_LEVEL = [
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
const MAX_LINES = 250;

interface Source {
  path: string;
  text: string;
  /** Values that it imports, not types: inside the repository by path, else by the name of the package. */
  imports: string[];
}

const sources = ['server', 'client', 'db', 'tests'].flatMap(sourcesBelow);
const product = sources.filter(({ path }) => !path.startsWith('tests/'));

/** From the bottom up: who stands higher may import who stands lower or beside him. The first match counts. */
const LAYERS: [layer: string, path: RegExp][] = [
  ['db', /^db\//],
  ['lib', /^server\/(lib\/|config\.ts|permissions\.ts)/],
  ['connectors', /^server\/connectors\//],
  ['queue', /^server\/queue\//],
  ['deps', /^server\/deps\.ts/],
  ['events', /^server\/events\//],
  ['engine', /^server\/engine\//],
  ['procedure', /^server\/(authentication|procedure|endpoint)\.ts/],
  ['resources', /^server\/resources\//],
  ['router', /^server\/router\.ts/],
  ['http', /^server\/http\//],
  ['app', /^server\/app\.ts/],
  ['start', /^server\/[\w-]+\.ts/],
];
const layerOf = (path: string) => LAYERS.findIndex(([, pattern]) => pattern.test(path));

/** Who may use a package, or a piece of the platform. */
const HOMES: [what: string, imported: RegExp, home: RegExp][] = [
  ['elysia', /^elysia/, /^server\/(app\.ts|http\/)/],
  ['@trpc/server', /^@trpc\/server(?!\/observable)/, /^server\/(procedure\.ts|router\.ts|app\.ts|http\/)/],
  ['@trpc/client', /^@trpc\/client/, /^client\//],
  ['trpc-to-openapi', /^trpc-to-openapi/, /^server\/(endpoint\.ts|http\/)/],
  ['zod-openapi', /^zod-openapi/, /^server\/http\//],
  ['postgres.js', /^(postgres$|drizzle-orm\/postgres-js)/, /^db\//],
  ['pg-boss', /^pg-boss/, /^server\/queue\//],
  ['pg', /^pg$/, /^server\/connectors\/postgres\//],
  ['ssh2', /^ssh2/, /^server\/(engine\/ssh-tunnel|lib\/ssh-keys)\.ts/],
  ['mysql2', /^mysql2/, /^server\/connectors\/mysql\//],
  ['DuckDB', /^@duckdb\//, /^server\/connectors\/(file|duckdb)\//],
  ['React and what goes with it', /^(react|@mantine|@tanstack|wouter)/, /^client\/console\//],
  ['prom-client', /^prom-client/, /^server\/http\/metrics\.ts/],
];

describe('imports', () => {
  test('point one way', () => {
    const wrong = product.flatMap(({ path, imports }) =>
      imports
        .filter((imported) => layerOf(path) >= 0 && layerOf(imported) > layerOf(path))
        .map((to) => `${path} -> ${to}`),
    );
    expect(wrong).toEqual([]);
  });

  test('of connectors reach nothing but lib and connectors', () => {
    expect(importsFrom('server/connectors/', /^(db\/|server\/(?!connectors\/|lib\/))/)).toEqual([]);
  });

  test('of one resource do not reach into another', () => {
    const resource = (path: string) => /^server\/resources\/([\w-]+)\//.exec(path)?.[1];
    const wrong = product.flatMap(({ path, imports }) =>
      imports.filter(
        (to) => resource(to) !== undefined && resource(path) !== undefined && resource(to) !== resource(path),
      ),
    );
    expect(wrong).toEqual([]);
  });

  test('of clients take types alone from the server', () => {
    expect(importsFrom('client/', /^(server|db)\//)).toEqual([]);
  });

  test.each(HOMES)('of %s are at home in one place', (_, imported, home) => {
    const users = product.filter(({ imports }) => imports.some((name) => imported.test(name))).map(({ path }) => path);
    expect(users.filter((path) => !home.test(path))).toEqual([]);
  });
});

describe('files', () => {
  test('at the top level are the agreed ones', () => {
    const present = readdirSync(ROOT).filter((name) => !name.startsWith('.') && !IGNORED.includes(name));
    expect(present.filter((name) => !TOP_LEVEL.includes(name))).toEqual([]);
  });

  test(`have ${MAX_LINES} lines at most`, () => {
    const long = product.filter(({ text }) => text.split('\n').length - 1 > MAX_LINES).map(({ path }) => path);
    expect(long).toEqual([]);
  });

  test('are named in kebab-case, and after what they hold', () => {
    const vague = /(^|\/)(utils?|helpers?|common|misc|shared)(\/|\.tsx?$)/;
    const wrong = sources.filter(
      ({ path }) => vague.test(path) || !/^([a-z0-9-]+\/)*[a-z0-9-]+(\.(test|config))?\.tsx?$/.test(path),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  test('but two do not read the environment', () => {
    const readers = product.filter(({ text }) => /process\.env|Bun\.env|import\.meta\.env/.test(text));
    expect(readers.map(({ path }) => path).toSorted()).toEqual(['client/cli/settings.ts', 'server/platform/config.ts']);
  });
});

function importsFrom(folder: string, imported: RegExp): string[] {
  return product
    .filter(({ path }) => path.startsWith(folder))
    .flatMap(({ path, imports }) => imports.filter((to) => imported.test(to)).map((to) => `${path} -> ${to}`));
}

function sourcesBelow(folder: string): Source[] {
  if (!existsSync(join(ROOT, folder))) return [];
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => {
      const path = join(folder, name);
      const text = readFileSync(join(ROOT, path), 'utf8');
      const imports = transpilers[path.endsWith('x') ? 'tsx' : 'ts']
        .scanImports(text)
        .map((one) => resolve(path, one.path));
      return { path, text, imports };
    });
}

function resolve(from: string, to: string): string {
  return to.startsWith('.') ? relative(ROOT, join(ROOT, dirname(from), to)) : to;
}
