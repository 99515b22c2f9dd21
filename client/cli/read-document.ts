import { readdirSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { UsageError } from './exit.ts';

/** `-` reads standard input. @throws UsageError if the file does not exist or cannot be read. */
export async function readText(path: string): Promise<string> {
  if (path === '-') return text(process.stdin);
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === undefined ? undefined : UNREADABLE[code];
    throw new UsageError(reason ? `${reason}: ${path}` : message);
  }
}

const UNREADABLE: Record<string, string> = {
  ENOENT: 'File not found',
  ENOTDIR: 'File not found',
  EISDIR: 'A folder, not a file',
  EACCES: 'No permission to read the file',
  EPERM: 'No permission to read the file',
};

export interface TextFile {
  path: string;
  text: string;
}

/** A file, or the YAML and JSON files of a folder in order of their names. @throws UsageError if there is none. */
export async function readTexts(path: string): Promise<TextFile[]> {
  if (path === '-' || statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true)
    return [{ path, text: await readText(path) }];
  const names = readdirSync(path).filter((name) => /\.(ya?ml|json)$/.test(name));
  if (names.length === 0) throw new UsageError(`${path} has no YAML or JSON files`);
  const paths = names.toSorted().map((name) => join(path, name));
  return Promise.all(paths.map(async (one) => ({ path: one, text: await readText(one) })));
}

/** Reads YAML or JSON. @throws UsageError with line and column. */
async function readDocument(path: string): Promise<unknown> {
  const { parse, YAMLParseError } = await import('yaml');
  try {
    return parse(await readText(path));
  } catch (error) {
    if (!(error instanceof YAMLParseError)) throw error;
    const at = error.linePos?.[0];
    throw new UsageError(`${path}:${at?.line ?? 1}:${at?.col ?? 1}: ${error.message.split('\n')[0]}`);
  }
}

/** The settings of a file. @throws UsageError unless it holds an object. */
export async function readObject(path: string): Promise<Record<string, unknown>> {
  const document = await readDocument(path);
  if (document === null || typeof document !== 'object' || Array.isArray(document))
    throw new UsageError(`${path}: expected an object of settings and values`);
  return document as Record<string, unknown>;
}

/** A `name=value` argument; the value is JSON where it is valid, else text. @throws UsageError without a name. */
export function pairOf(flag: string, pair: string): [name: string, value: unknown] {
  const at = pair.indexOf('=');
  if (at < 1) throw new UsageError(`${flag} ${pair}: expected name=value`);
  const given = pair.slice(at + 1);
  try {
    return [pair.slice(0, at), JSON.parse(given)];
  } catch {
    return [pair.slice(0, at), given];
  }
}
