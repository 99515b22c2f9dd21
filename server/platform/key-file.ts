import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

/**
 * Reads the random key in a file (mode 0600, 32 bytes as base64url), and creates it if it is missing. Safe when several
 * processes do so at once: all return the same key.
 * @throws Error of the file system
 */
export function readOrMakeKeyFile(path: string): string {
  return readIfThere(path) ?? make(path);
}

function make(path: string): string {
  const draft = `${path}.${process.pid}-${randomBytes(4).toString('hex')}`;
  try {
    writeFileSync(draft, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' });
    // A link fails if the file exists. Unlike a rename it never replaces another process's key, and unlike a write it
    // never exposes an incomplete one.
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return readFileSync(path, 'utf8').trim();
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
