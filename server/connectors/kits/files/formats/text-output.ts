import { once } from 'node:events';
import { finished, pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Cell } from '../../../contract/connector.ts';
import type { FileDestinationConfig } from '../settings/files.ts';
import type { Draft } from '../stores/store.ts';
import type { OutputFile } from './format.ts';

/** How a text format writes rows. */
export interface TextEncoding {
  /** Text before the first row. */
  head: string;
  rows(rows: Cell[][]): string;
}

/** @returns the extension of written files, which depends on the compression */
export const textExtension =
  (name: string) =>
  ({ gzip }: FileDestinationConfig): string =>
    gzip ? `${name}.gz` : name;

/** Opens a text file in the draft, compressed if the settings say so (level 6, the default of gzip). */
export async function openTextFile(
  draft: Draft,
  encoding: TextEncoding,
  { gzip }: FileDestinationConfig,
): Promise<OutputFile> {
  const packer = gzip ? createGzip() : null;
  const first = packer ?? draft.stream;
  const done = packer ? pipeline(packer, draft.stream) : finished(draft.stream);
  // Awaited in `close`; until then an unhandled rejection would end the process.
  done.catch(() => {});
  const append = async (text: string): Promise<void> => {
    if (text === '' || first.write(text)) return;
    await Promise.race([once(first, 'drain'), done]);
  };
  await append(encoding.head);
  return {
    write: (rows) => append(encoding.rows(rows)),
    async close() {
      first.end();
      await done;
      return draft.keep();
    },
    async discard() {
      first.destroy();
      await draft.discard();
    },
  };
}
