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

/** A file of the console in the forms in which browsers take it. */
export interface Asset {
  type: string;
  plain: Uint8Array<ArrayBuffer>;
  br: Uint8Array<ArrayBuffer>;
  gzip: Uint8Array<ArrayBuffer>;
}

export interface ConsoleBundle {
  /** By name; the name has a hash of the content. */
  assets: Map<string, Asset>;
  /** Names of what every page starts with. */
  entry: { script: string; style: string; scheme: string };
}

type Manifest = ConsoleBundle['entry'] & { types: Record<string, string> };

/**
 * The console, bundled: from `DATA_DIR/console/<fingerprint>` where this very state of its sources was bundled before,
 * else made now (about a second) and kept there. A folder that cannot be written costs that second at each start.
 */
export async function loadConsole({ config, log }: Deps): Promise<ConsoleBundle> {
  const folder = join(config.DATA_DIR, 'console', fingerprint());
  const kept = readKept(folder);
  if (kept) return kept;
  const start = performance.now();
  const bundle = await makeConsole();
  log.debug({ ms: Math.round(performance.now() - start) }, 'the console was bundled');
  try {
    keep(bundle, folder);
  } catch (error) {
    log.warn({ err: error }, 'the bundled console cannot be kept in DATA_DIR');
  }
  return bundle;
}

/** Of the sources, of what is installed, of the bundler itself and of how it is told here. */
function fingerprint(): string {
  const hash = createHash('sha256').update(Bun.version);
  const files = readdirSync(join(ROOT, 'client'), { recursive: true, encoding: 'utf8' });
  const sources = files.filter((name) => /\.(tsx?|css|svg)$/.test(name)).toSorted();
  for (const path of ['bun.lock', 'server/http/console-bundle.ts', ...sources.map((name) => join('client', name))]) {
    hash.update(`\n${path}\n`).update(readFileSync(join(ROOT, path)));
  }
  return hash.digest('hex').slice(0, 16);
}

async function makeConsole(): Promise<ConsoleBundle> {
  const { outputs } = await Bun.build({
    entrypoints: [join(CONSOLE, 'main.tsx'), join(CONSOLE, 'color-scheme.ts')],
    target: 'browser',
    splitting: true,
    minify: true,
    naming: { entry: '[name]-[hash].[ext]', chunk: '[name]-[hash].[ext]', asset: '[name]-[hash].[ext]' },
    publicPath: '/assets/',
    // Written so because config.ts alone may name the environment, even where only React's is meant.
    define: { [['process', 'env', 'NODE_ENV'].join('.')]: '"production"' },
  });
  const made = await Promise.all(outputs.map(async (output) => [nameOf(output.path), await assetOf(output)] as const));
  const assets = new Map(made.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  const named = (form: RegExp, kind: (typeof outputs)[number]['kind']) => {
    // By its kind: chunks can have the name of the file that leads to them.
    const found = outputs.find((output) => output.kind === kind && form.test(nameOf(output.path)));
    if (found === undefined) throw new Error(`The console was bundled without ${form.source}`);
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

function readKept(folder: string): ConsoleBundle | null {
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

/** Whole or not at all: another process may read, or make the same, at the same time. */
function keep({ assets, entry }: ConsoleBundle, folder: string): void {
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
  const former = readdirSync(parent).filter((name) => join(parent, name) !== draft && !name.includes('.'));
  try {
    renameSync(draft, folder);
  } catch {
    rmSync(draft, { recursive: true, force: true });
  }
  for (const name of former.filter((one) => join(parent, one) !== folder)) {
    rmSync(join(parent, name), { recursive: true, force: true });
  }
}
