import { mkdir, realpath, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { Glob } from 'bun';
import { ConfigurationError, ConnectorError, RetryableError } from '../../../contract/errors.ts';
import type { FoundFile, SourceStore } from './store.ts';

export const WILDCARD = /[*?[\]{}!]/;
export const MAX_FILES = 100_000;

const outside = (path: string) =>
  new ConfigurationError('path_outside_root', `The path "${path}" is outside the files folder`);

/** Files below `ctx.filesRoot`. */
export const localSourceStore: SourceStore = {
  find: ({ config, filesRoot }) => findFiles(filesRoot, config.path ?? ''),
  placeName: ({ path = '' }) => path,
};

/** Converts an error of the file system to a ConnectorError. `name` is shown to users: no path above the root. */
export function fileError(error: unknown, name: string): unknown {
  if (!(error instanceof Error) || error instanceof ConnectorError || !('code' in error)) return error;
  const code = String(error.code);
  if (code === 'ENOENT') return new ConfigurationError('file_not_found', `File "${name}" not found`, { cause: error });
  if (['EACCES', 'EPERM', 'EROFS'].includes(code)) {
    return new ConfigurationError('file_forbidden', `The service has no permission to open "${name}"`, {
      cause: error,
    });
  }
  if (['EISDIR', 'ENOTDIR', 'ENAMETOOLONG', 'EEXIST', 'ELOOP'].includes(code)) {
    return new ConfigurationError('file_path_invalid', `"${name}" cannot be used as a path (${code})`, {
      cause: error,
    });
  }
  if (!/^E[A-Z]+$/.test(code)) return error;
  const remedy = DISK_IS_FULL.includes(code) ? '. Free space on the disk of the files folder' : '';
  return new RetryableError('file_error', `"${name}": ${reasonOf(error)}${remedy}`, { cause: error });
}

/** No room on a disk, or in a quota. */
const DISK_IS_FULL = ['ENOSPC', 'EDQUOT'];

/** Of `ENOSPC: no space left on device, write '/root/file'`, without the path. */
function reasonOf({ message }: Error): string {
  const [, code = message, reason] = /^(E[A-Z]+): ([^,]*)/.exec(message) ?? [];
  return reason === undefined ? code : `${reason} (${code})`;
}

/**
 * The files that a path or pattern names, sorted by name. `_pipeline_state` folders are left out.
 * @throws ConfigurationError if any file is outside the root
 */
export async function findFiles(root: string, pattern: string): Promise<FoundFile[]> {
  refuseEscapes(pattern);
  try {
    const top = await realpath(root);
    if (!WILDCARD.test(pattern)) return [await foundFile(top, pattern)];
    const found: FoundFile[] = [];
    await insideRoot(top, literalPart(pattern));
    for await (const name of new Glob(pattern).scan({ cwd: top, onlyFiles: true, followSymlinks: true })) {
      if (name.split(sep).includes('_pipeline_state')) continue;
      found.push(await foundFile(top, name));
      if (found.length > MAX_FILES)
        throw new ConfigurationError('too_many_files', `"${pattern}" matches more than ${MAX_FILES} files`);
    }
    return found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    throw fileError(error, pattern);
  }
}

/** The real path of a folder below the root, created if missing. @throws ConfigurationError if it is outside */
export async function folderBelow(root: string, path: string): Promise<string> {
  refuseEscapes(path);
  try {
    await mkdir(root, { recursive: true });
    const top = await realpath(root);
    const folder = join(top, path);
    let existing = folder;
    while (!(await exists(existing))) existing = dirname(existing);
    await insideRoot(top, relative(top, existing));
    await mkdir(folder, { recursive: true });
    return await realpath(folder);
  } catch (error) {
    throw fileError(error, path);
  }
}

/** Encodes a name as one path segment, so that it cannot lead outside its folder. */
export const safeSegment = (name: string) => encodeURIComponent(name).replace(/^\./, '%2E').replaceAll('*', '%2A');

function refuseEscapes(path: string): void {
  const segments = path.split(/[/\\]/);
  if (path.startsWith('/') || path.includes('\0') || segments.includes('..')) throw outside(path);
}

/** The folders of a pattern before its first wildcard. */
function literalPart(pattern: string): string {
  const segments = pattern.split('/');
  const first = segments.findIndex((segment) => WILDCARD.test(segment));
  return segments.slice(0, first).join('/');
}

/** The common prefix of all names that a pattern matches. */
export const literalStart = (pattern: string): string => pattern.slice(0, WILDCARD.exec(pattern)?.index);

/** Resolves the links of a path. @throws ConfigurationError if it is outside the root */
async function insideRoot(top: string, name: string): Promise<string> {
  const path = await realpath(join(top, name));
  if (path !== top && !path.startsWith(top + sep)) throw outside(name);
  return path;
}

async function foundFile(top: string, name: string): Promise<FoundFile> {
  const path = await insideRoot(top, name);
  const about = await stat(path, { bigint: true });
  if (!about.isFile()) throw new ConfigurationError('file_path_invalid', `"${name}" is not a file`);
  return { name, path, size: Number(about.size), modified: Number(about.mtimeNs / 1000n) };
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );
