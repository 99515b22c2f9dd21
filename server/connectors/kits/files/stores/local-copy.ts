import { type FileHandle, mkdir, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { FoundFile } from './store.ts';

/** A Parquet file ends with the length of its footer and "PAR1". */
const TAIL_BYTES = 8;
const MAX_FOOTER_BYTES = 256 << 20;

export interface LocalCopy {
  path: string;
  close(): Promise<void>;
}

/**
 * A path at which DuckDB can read the file. A remote file is copied to an open file that is unlinked before the first byte
 * is written, so that its space is freed however this process ends.
 * @param part `footer`: copies only the part that describes the columns, if the server supports ranges
 */
export async function localCopy(file: FoundFile, part: 'whole' | 'footer', root: string): Promise<LocalCopy> {
  if (!file.remote) return { path: file.path, close: async () => {} };
  const handle = await unnamedFile(root);
  try {
    const footer = part === 'footer' && file.remote.has_ranges && file.size > 2 * TAIL_BYTES;
    await (footer ? copyFooter(file, handle) : copyWhole(file, handle));
    return { path: pathOf(handle), close: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** The path of an open file, which works without a name, too. */
export const pathOf = (handle: FileHandle) => `/dev/fd/${handle.fd}`;

export async function unnamedFile(root: string): Promise<FileHandle> {
  await mkdir(root, { recursive: true });
  const path = join(root, `.copy-${crypto.randomUUID()}`);
  const handle = await open(path, 'wx+', 0o600);
  await unlink(path);
  return handle;
}

async function copyWhole(file: FoundFile, handle: FileHandle): Promise<void> {
  if (!file.remote) return;
  const { bytes } = await file.remote.open();
  for await (const chunk of bytes) await handle.writeFile(chunk);
}

/** A sparse file of the same length that contains only the footer. */
async function copyFooter(file: FoundFile, handle: FileHandle): Promise<void> {
  if (!file.remote) return;
  const tail = await file.remote.part({ from: file.size - TAIL_BYTES, length: TAIL_BYTES });
  const declared = tail.toString('latin1', 4) === 'PAR1' ? tail.readUInt32LE(0) : 0;
  const length = Math.min(declared + TAIL_BYTES, file.size, MAX_FOOTER_BYTES);
  const from = file.size - length;
  const footer = await file.remote.part({ from, length });
  await handle.truncate(file.size);
  await handle.write(footer, 0, length, from);
}
