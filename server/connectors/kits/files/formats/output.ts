import { once } from 'node:events';
import { finished, pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Cell, TargetColumn } from '../../../contract/connector.ts';
import { csvEncoder, jsonlEncoder } from './encoders.ts';
import { openParquet } from './parquet-output.ts';
import type { FileDestinationConfig } from '../../../file/settings.ts';
import type { Draft } from '../stores/table-store.ts';

/** A file being written. */
export interface OutputFile {
  write(rows: Cell[][]): Promise<void>;
  /** Ends the file and makes it durable. @returns its size in bytes */
  close(): Promise<number>;
  /** Leaves nothing behind; harmless after `close` failed. */
  discard(): Promise<void>;
}

export const endingOf = ({ format, gzip }: FileDestinationConfig) =>
  gzip && format !== 'parquet' ? `${format}.gz` : format;

export async function openOutput(
  draft: Draft,
  columns: TargetColumn[],
  config: FileDestinationConfig,
): Promise<OutputFile> {
  if (config.format === 'parquet') return openParquet(draft, columns);
  const encode = config.format === 'csv' ? csvEncoder(columns, config) : jsonlEncoder(columns);
  const file = openText(draft, config.gzip);
  await file.append(encode.head);
  return { write: (rows) => file.append(encode.rows(rows)), close: file.close, discard: file.discard };
}

/** Compression at level 6, as gzip itself does it. */
function openText(draft: Draft, gzip: boolean) {
  const packer = gzip ? createGzip() : null;
  const first = packer ?? draft.stream;
  const done = packer ? pipeline(packer, draft.stream) : finished(draft.stream);
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
      return draft.keep();
    },
    async discard(): Promise<void> {
      first.destroy();
      await draft.discard();
    },
  };
}
