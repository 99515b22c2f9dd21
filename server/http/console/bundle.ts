import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deserialize } from 'bun:jsc';
import type { Deps } from '../../deps.ts';
import { limitedEnvironment } from '../../platform/config.ts';
import type { Asset, ConsoleBundle } from './build.ts';

const ROOT = join(import.meta.dir, '../../..');
const BUILDER = join(import.meta.dir, 'build-process.ts');
const MANIFEST = 'manifest.json';

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

/** Covers the sources, the installed packages, the bundler and its options. */
function fingerprint(): string {
  const hash = createHash('sha256').update(Bun.version);
  const files = readdirSync(join(ROOT, 'client'), { recursive: true, encoding: 'utf8' });
  const sources = files.filter((name) => /\.(tsx?|css|svg)$/.test(name)).toSorted();
  for (const path of ['bun.lock', 'server/http/console/build.ts', ...sources.map((name) => join('client', name))]) {
    hash.update(`\n${path}\n`).update(readFileSync(join(ROOT, path)));
  }
  return hash.digest('hex').slice(0, 16);
}

/**
 * In a process of its own: the bundler takes 300 MB for a second, and left 10 MB of them in the process that called it.
 */
async function bundleConsole(): Promise<ConsoleBundle> {
  const builder = Bun.spawn([process.execPath, BUILDER], {
    env: limitedEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [bytes, words, code] = await Promise.all([
    new Response(builder.stdout).arrayBuffer(),
    new Response(builder.stderr).text(),
    builder.exited,
  ]);
  if (code !== 0) throw new Error(`The bundler ended with ${builder.signalCode ?? `exit code ${code}`}: ${words}`);
  return deserialize(bytes) as ConsoleBundle;
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
