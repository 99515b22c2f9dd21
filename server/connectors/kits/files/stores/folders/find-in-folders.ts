import { Glob } from 'bun';
import { ConfigurationError } from '../../../../contract/errors.ts';
import { MAX_FILES, WILDCARD } from '../local-files.ts';

/** An entry of a folder on a server. A link has the kind of what it leads to. */
export interface FolderEntry {
  name: string;
  kind: 'file' | 'folder' | 'other';
  is_link: boolean;
  size: number;
  /** Microseconds since 1970. */
  modified: number;
}

export type FoundEntry = FolderEntry & { path: string };

/** @returns null if the folder does not exist */
type ListFolder = (path: string) => Promise<FolderEntry[] | null>;

const MAX_DEPTH = 100;

/** The files that a path or pattern names, sorted by path. `_pipeline_state` folders are left out. */
export async function findInFolders(pattern: string, list: ListFolder): Promise<FoundEntry[]> {
  const segments = pattern.split('/');
  if (segments.includes('..')) {
    throw new ConfigurationError('path_invalid', `The path "${pattern}" contains "..". Enter the path without it`);
  }
  const first = segments.findIndex((segment) => WILDCARD.test(segment));
  const literal = segments.slice(0, first < 0 ? -1 : first);
  // Braces and ** can match several levels; otherwise nothing deeper than the pattern is listed.
  const isDeep = /\*\*|\{[^}]*\//.test(pattern);
  const levels = isDeep ? MAX_DEPTH : segments.length - literal.length;
  const glob = first < 0 ? null : new Glob(pattern);
  const found: FoundEntry[] = [];
  const visit = async (folder: string, left: number): Promise<void> => {
    for (const entry of (await list(folder || (pattern.startsWith('/') ? '/' : '.'))) ?? []) {
      const path = folder === '' ? `${pattern.startsWith('/') ? '/' : ''}${entry.name}` : `${folder}/${entry.name}`;
      if (entry.kind === 'file' && (glob ? glob.match(path) : path === pattern)) found.push({ ...entry, path });
      if (found.length > MAX_FILES)
        throw new ConfigurationError('too_many_files', `"${pattern}" matches more than ${MAX_FILES} files`);
      // A link among any number of levels can lead back to a folder above it.
      const enters = entry.kind === 'folder' && left > 1 && !(isDeep && entry.is_link);
      if (enters && entry.name !== '_pipeline_state') await visit(path, left - 1);
    }
  };
  await visit(literal.join('/'), levels);
  return found.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}
