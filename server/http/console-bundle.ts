import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Deps } from '../deps.ts';

const ROOT = join(import.meta.dir, '../..');
const CONSOLE = join(ROOT, 'client/console');
const MANIFEST = 'manifest.json';
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

type Manifest = ConsoleBundle['entry'] & { types: Record<string, string> };

/**
 * Loads the bundled console from `DATA_DIR/console/<fingerprint>`. When its sources changed, bundles it (about a second)
 * and stores it there. If the folder cannot be written, every start takes that second.
 */
export async function loadConsole({ config, log }: Deps): Promise<ConsoleBundle> {
  const folder = join(config.DATA_DIR, 'console', fingerprint());
  const stored = readStored(folder);
  if (stored) return stored;
  const start = performance.now();
  const bundle = await bundleConsole();
  log.debug({ ms: Math.round(performance.now() - start) }, 'console bundled');
  try {
    store(bundle, folder);
  } catch (error) {
    log.warn({ err: error }, 'cannot store the bundled console in DATA_DIR');
  }
  return bundle;
}

/** Covers the sources, the installed packages, the bundler and its options in this file. */
function fingerprint(): string {
  const hash = createHash('sha256').update(Bun.version);
  const files = readdirSync(join(ROOT, 'client'), { recursive: true, encoding: 'utf8' });
  const sources = files.filter((name) => /\.(tsx?|css|svg)$/.test(name)).toSorted();
  for (const path of ['bun.lock', 'server/http/console-bundle.ts', ...sources.map((name) => join('client', name))]) {
    hash.update(`\n${path}\n`).update(readFileSync(join(ROOT, path)));
  }
  return hash.digest('hex').slice(0, 16);
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

async function bundleConsole(): Promise<ConsoleBundle> {
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

function readStored(folder: string): ConsoleBundle | null {
  try {
    const { types, ...entry } = JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8')) as Manifest;
    const read = (name: string) => new Uint8Array(readFileSync(join(folder, name)));
    const assets = Object.entries(types).map(
      ([name, type]) =>
        [name, { type, plain: read(name), br: read(`${name}.br`), gzip: read(`${name}.gz`) }] as [string, Asset],
    );
    return { assets: new Map(assets), entry };
  } catch {
    return null;
  }
}

/** Writes to a draft folder and renames it: other processes may read or store the same bundle at the same time. */
function store({ assets, entry }: ConsoleBundle, folder: string): void {
  const parent = join(folder, '..');
  const draft = `${folder}.${crypto.randomUUID()}`;
  mkdirSync(draft, { recursive: true });
  for (const [name, asset] of assets) {
    writeFileSync(join(draft, name), asset.plain);
    writeFileSync(join(draft, `${name}.br`), asset.br);
    writeFileSync(join(draft, `${name}.gz`), asset.gzip);
  }
  const types = Object.fromEntries([...assets].map(([name, { type }]) => [name, type]));
  writeFileSync(join(draft, MANIFEST), JSON.stringify({ ...entry, types } satisfies Manifest));
  const outdated = readdirSync(parent).filter((name) => join(parent, name) !== draft && !name.includes('.'));
  try {
    renameSync(draft, folder);
  } catch {
    rmSync(draft, { recursive: true, force: true });
  }
  for (const name of outdated.filter((one) => join(parent, one) !== folder)) {
    rmSync(join(parent, name), { recursive: true, force: true });
  }
}
