import { open } from 'node:fs/promises';
import { localCopy } from '../stores/local-copy.ts';
import { fileError } from '../stores/local-files.ts';
import type { FoundFile } from '../stores/store.ts';

/** The bytes of a file in any order. */
export interface ByteSource {
  size: number;
  /** Reads exactly `length` bytes that start at offset `from`. */
  read(range: { from: number; length: number }): Promise<Buffer>;
  close(): Promise<void>;
}

/** Reads parts of a remote file; a server without ranges sends the whole file, to a file that has no name. */
export async function byteSource(file: FoundFile, root: string): Promise<ByteSource> {
  const { remote } = file;
  if (remote?.has_ranges && file.size >= 0) {
    return { size: file.size, read: (range) => remote.part(range), close: async () => {} };
  }
  const copy = await localCopy(file, 'whole', root);
  try {
    const handle = await open(copy.path, 'r');
    const { size } = await handle.stat();
    return {
      size,
      async read({ from, length }) {
        const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(length), 0, length, from);
        return buffer.subarray(0, bytesRead);
      },
      close: () => handle.close().then(copy.close),
    };
  } catch (error) {
    await copy.close();
    throw fileError(error, file.name);
  }
}
