import { existsSync, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { version } from 'pyodide/package.json';
import { limitedEnvironment } from '../../../platform/config.ts';
import { BASE } from './base.ts';

const PROGRAM = join(import.meta.dir, 'snapshot-process.ts');
const name = `python-${version}-${Bun.version}-${Bun.hash(BASE).toString(36)}.snapshot`;

let making: Promise<string | null> | null = null;

/**
 * A file with the memory of a Python that has loaded the base, from which a process starts in a tenth of the time. The
 * first use creates it. Null: it cannot be kept, and each process starts from nothing.
 */
export function snapshotPath(): Promise<string | null> {
  making ??= findSnapshot().catch(() => null);
  return making;
}

async function findSnapshot(): Promise<string | null> {
  const user = process.getuid?.() ?? 0;
  const folder = join(tmpdir(), `data-pipelines-python-${user}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { uid, mode } = lstatSync(folder);
  // In a shared folder, only one's own may be trusted: what it holds becomes the memory of Python.
  if (!lstatSync(folder).isDirectory() || uid !== user || (mode & 0o077) !== 0) return null;
  const path = join(folder, name);
  if (existsSync(path)) return path;
  const made = Bun.spawn([process.execPath, PROGRAM, path], {
    env: limitedEnvironment(),
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  return (await made.exited) === 0 ? path : null;
}
