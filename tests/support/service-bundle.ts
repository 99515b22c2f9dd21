import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BunPlugin } from 'bun';

/**
 * The service and the command line as a file of compiled code each, for the processes that tests start: they are ready in
 * half of the processor time that it takes with a thousand sources. Made once per check; without them, these processes
 * start from the sources.
 */

const ROOT = join(import.meta.dir, '../..');
/** Inside node_modules: what stays outside of the file is found from there. */
const BUNDLES = join(ROOT, 'node_modules/.cache');
/** They load files of their own, by their place. */
const OUTSIDE = ['*.node', '@duckdb/*', 'cpu-features', 'jq-wasm', 'pyodide', 'sharp', 'ssh2'];

export interface ServiceBundle {
  /** The setting by which the tests and their processes find them. */
  env: { SERVICE_BUNDLE: string; CLI_BUNDLE: string };
  remove(): void;
}

export async function bundleService(): Promise<ServiceBundle> {
  mkdirSync(BUNDLES, { recursive: true });
  const folder = mkdtempSync(join(BUNDLES, 'service-'));
  const bundled = async (program: string, entry: string) => {
    const outdir = join(folder, program);
    await Bun.build({
      entrypoints: [join(ROOT, entry)],
      target: 'bun',
      format: 'cjs',
      bytecode: true,
      outdir,
      external: OUTSIDE,
      plugins: [atTheirPlaces],
    });
    return join(outdir, 'main.js');
  };
  const [SERVICE_BUNDLE, CLI_BUNDLE] = await Promise.all([
    bundled('service', 'server/process/main.ts'),
    bundled('cli', 'client/cli/main.ts'),
  ]);
  return {
    env: { SERVICE_BUNDLE, CLI_BUNDLE },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The setting for processes that this one starts, if there is a bundle: `server/main.ts` then begins with it. */
export function loadServiceBundle(): { BUN_OPTIONS?: string } {
  if (process.env.SERVICE_BUNDLE === undefined) return {};
  const preload = `--preload=${join(import.meta.dir, 'load-service-bundle.ts')}`;
  return { BUN_OPTIONS: [process.env.BUN_OPTIONS, preload].filter(Boolean).join(' ') };
}

/** Each module finds programs and files of the service from where its source is. */
const atTheirPlaces: BunPlugin = {
  name: 'at their places',
  setup(build) {
    build.onLoad({ filter: new RegExp(`^${ROOT}/(?:server|db|client)/.*\\.ts$`) }, ({ path }) => {
      const folder = JSON.stringify(dirname(path));
      const contents = readFileSync(path, 'utf8')
        .replaceAll('import.meta.dir', folder)
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
        .replaceAll('import.meta.main', 'false')
        .replaceAll(/import\.meta\.resolve\(([^()]*)\)/g, `Bun.pathToFileURL(Bun.resolveSync($1, ${folder})).href`);
      return { contents, loader: 'ts' };
    });
  },
};
