import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { open, rm, stat } from 'node:fs/promises';
import { finished, pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Cell, TargetColumn } from '../define.ts';
import { csvEncoder, jsonlEncoder } from './encoders.ts';
import { openParquet } from './parquet-output.ts';
import type { FileDestinationConfig } from './settings.ts';

/** A file being written. */
export interface OutputFile {
  write(rows: Cell[][]): Promise<void>;
  /** Ends the file and brings it to the disk. @returns its size in bytes */
  close(): Promise<number>;
  /** Leaves nothing behind; harmless after `close` failed. */
  discard(): Promise<void>;
}

export const endingOf = ({ format, gzip }: FileDestinationConfig) =>
  gzip && format !== 'parquet' ? `${format}.gz` : format;

export async function openOutput(
  path: string,
  columns: TargetColumn[],
  config: FileDestinationConfig,
): Promise<OutputFile> {
  if (config.format === 'parquet') return openParquet(path, columns);
  const encode = config.format === 'csv' ? csvEncoder(columns, config) : jsonlEncoder(columns);
  const file = await openText(path, config.gzip);
  await file.append(encode.head);
  return { write: (rows) => file.append(encode.rows(rows)), close: file.close, discard: file.discard };
}

/** Compression at level 6, as gzip itself does it. */
async function openText(path: string, gzip: boolean) {
  const disk = createWriteStream(path, { flags: 'wx' });
  await once(disk, 'open');
  const packer = gzip ? createGzip() : null;
  const first = packer ?? disk;
  const done = packer ? pipeline(packer, disk) : finished(disk);
  // Heard at close; an unheard rejection would end the process before.
  done.catch(() => {});
  return {
    async append(text: string): Promise<void> {
      if (text === '' || first.write(text)) return;
      await Promise.race([once(first, 'drain'), done]);
    },
    async close(): Promise<number> {
      first.end();
      await done;
      return syncFile(path);
    },
    async discard(): Promise<void> {
      first.destroy();
      disk.destroy();
      await rm(path, { force: true });
    },
  };
}

/** @returns the size */
export async function syncFile(path: string): Promise<number> {
  const handle = await open(path, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  return (await stat(path)).size;
}
