import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

const CONSOLE = join(import.meta.dir, '../../../client/console');
const QUALITY = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };

/** A file of the console in each encoding that browsers accept. */
export interface Asset {
  type: string;
  plain: Uint8Array<ArrayBuffer>;
  br: Uint8Array<ArrayBuffer>;
  gzip: Uint8Array<ArrayBuffer>;
}

export interface ConsoleBundle {
  /** Keyed by name, which contains a hash of the content. */
  assets: Map<string, Asset>;
  /** Names of the assets that every page loads first. */
  entry: { script: string; style: string; scheme: string };
}

/** What the bundler takes, and how. */
export const CONSOLE_BUILD = {
  entrypoints: [join(CONSOLE, 'main.tsx'), join(CONSOLE, 'color-scheme.ts')],
  target: 'browser',
  splitting: true,
  minify: true,
  naming: { entry: '[name]-[hash].[ext]', chunk: '[name]-[hash].[ext]', asset: '[name]-[hash].[ext]' },
  // Relative to the file that imports, because the console may be below a path.
  publicPath: './',
  // Joined because only config.ts may name the environment variable object, and this one is React's.
  define: { [['process', 'env', 'NODE_ENV'].join('.')]: '"production"' },
} satisfies Bun.BuildConfig;

export async function buildConsole(): Promise<ConsoleBundle> {
  const { outputs } = await Bun.build(CONSOLE_BUILD);
  const built = await Promise.all(outputs.map(async (output) => [nameOf(output.path), await assetOf(output)] as const));
  const assets = new Map(built.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  const named = (form: RegExp, kind: (typeof outputs)[number]['kind']) => {
    // The kind matters: chunks can have the same name as the file that imports them.
    const found = outputs.find((output) => output.kind === kind && form.test(nameOf(output.path)));
    if (found === undefined) throw new Error(`The console bundle has no file that matches ${form.source}`);
    return nameOf(found.path);
  };
  const entry = {
    script: named(/^main-\w+\.js$/, 'entry-point'),
    style: named(/^main-\w+\.css$/, 'asset'),
    scheme: named(/^color-scheme-\w+\.js$/, 'entry-point'),
  };
  return { assets, entry };
}

const nameOf = (path: string) => path.replace(/^.*\//, '');

async function assetOf(output: Blob): Promise<Asset> {
  const plain = new Uint8Array(await output.arrayBuffer());
  const [br, zipped] = await Promise.all([
    promisify(brotliCompress)(plain, QUALITY),
    promisify(gzip)(plain, { level: 9 }),
  ]);
  return { type: output.type, plain, br: new Uint8Array(br), gzip: new Uint8Array(zipped) };
}
