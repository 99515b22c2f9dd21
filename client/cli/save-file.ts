import { chmodSync, existsSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { CommandError } from './exit.ts';

/**
 * Writes a file whole or not at all: on a full disk a former file stays as it is. `mode`: its permissions; by default those
 * of the former file.
 * @throws CommandError
 */
export function saveFile(path: string, text: string, mode?: number): void {
  try {
    const former = existsSync(path) ? statSync(path) : null;
    // Such as /dev/stdout, which nothing can take the place of.
    if (former && !former.isFile()) return writeFileSync(path, text);
    replace(former ? realpathSync(path) : path, text, mode ?? (former ? former.mode & 0o777 : undefined));
  } catch (error) {
    throw new CommandError('failed', `Cannot write ${path}: ${(error as Error).message}`);
  }
}

function replace(path: string, text: string, mode: number | undefined): void {
  const draft = `${path}.partial-${process.pid}`;
  try {
    writeFileSync(draft, text, { mode });
    // `mode` of a new file is subject to the umask.
    if (mode !== undefined) chmodSync(draft, mode);
    renameSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
}
