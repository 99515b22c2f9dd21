import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import packageFile from '../../package.json' with { type: 'json' };
import { plainTypes, trpcTypes } from './declarations.ts';

const ROOT = join(import.meta.dir, '../..');
/** Ignored by git. */
const DEFAULT_FOLDER = join(ROOT, '.data/dist/client');

/** Environment of the compiler. */
type Environment = Record<string, string | undefined>;

/** Builds the npm package of the typed client: one file of JavaScript, and declarations without the server's types. */
export async function buildClientPackage(folder: string, env?: Environment): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const [router] = await Promise.all([routerDeclaration(env), bundle(folder)]);
  const template = readFileSync(join(import.meta.dir, 'types.template'), 'utf8');
  writeFileSync(
    join(folder, 'index.d.ts'),
    template.replace('ROUTER', () => plainTypes(router)),
  );
  writeFileSync(join(folder, 'trpc.d.ts'), trpcTypes(router));
  writeFileSync(join(folder, 'trpc.js'), 'export {};\n');
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(description(), null, 2)}\n`);
  cpSync(join(import.meta.dir, 'README.md'), join(folder, 'README.md'));
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
}

const description = () => ({
  name: 'data-pipelines-client',
  version: packageFile.version,
  description: 'Typed client of a data pipeline service',
  license: packageFile.license,
  type: 'module',
  sideEffects: false,
  engines: { node: '>=20' },
  exports: {
    '.': { types: './index.d.ts', default: './index.js' },
    './trpc': { types: './trpc.d.ts', default: './trpc.js' },
  },
  peerDependencies: { '@trpc/server': packageFile.dependencies['@trpc/server'] },
  peerDependenciesMeta: { '@trpc/server': { optional: true } },
});

async function bundle(folder: string): Promise<void> {
  const built = await Bun.build({
    entrypoints: [join(import.meta.dir, 'index.ts')],
    outdir: folder,
    target: 'browser',
    format: 'esm',
    minify: { syntax: true, whitespace: true },
  });
  if (!built.success) throw new AggregateError(built.logs, 'The client could not be bundled');
}

/** The compiler writes the types of all procedures out. */
async function routerDeclaration(env?: Environment): Promise<string> {
  const work = mkdtempSync(join(tmpdir(), 'declarations-'));
  try {
    const settings = {
      extends: join(ROOT, 'tsconfig.json'),
      compilerOptions: {
        noEmit: false,
        declaration: true,
        emitDeclarationOnly: true,
        // The errors of the client are those of `bun run types`: looking for them again takes half of the time.
        noCheck: true,
        outDir: work,
        rootDir: ROOT,
        typeRoots: [join(ROOT, 'node_modules/@types')],
        types: [join(ROOT, 'node_modules/bun-types')],
      },
      include: [],
      // The whole client, as it is checked otherwise.
      files: [join(ROOT, 'client/api.ts')],
    };
    writeFileSync(join(work, 'tsconfig.json'), JSON.stringify(settings));
    const compiler = join(ROOT, 'node_modules/.bin/tsc');
    const child = Bun.spawn([compiler, '-p', work, '--singleThreaded'], {
      stdout: 'pipe',
      stderr: 'inherit',
      ...(env && { env }),
    });
    const output = await new Response(child.stdout).text();
    if ((await child.exited) !== 0) throw new Error(`The types could not be written: ${output}`);
    return readFileSync(join(work, 'server/router.d.ts'), 'utf8');
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const folder = resolve(process.argv[2] ?? DEFAULT_FOLDER);
  await buildClientPackage(folder);
  process.stdout.write(`Built ${folder}. Publish it with: npm publish ${folder}\n`);
}
