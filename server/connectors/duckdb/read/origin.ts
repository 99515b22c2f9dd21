import { stat } from 'node:fs/promises';
import { type FileOrigin, headerOf } from '../../kits/sql/cursors/file-origin.ts';
import { existingFile, type FileContext } from '../connection/file-access.ts';

/** Two headers take turns. Each begins with a checksum and the number of the checkpoint. */
const NUMBERS_AT = [4096 + 8, 8192 + 8];
const HEADERS_LENGTH = 12_288;

export async function findOrigin(ctx: FileContext): Promise<FileOrigin | null> {
  const { path } = await existingFile(ctx);
  const headers = await headerOf(path, HEADERS_LENGTH);
  if (!headers) return null;
  const numbers = NUMBERS_AT.map((at) => Number(headers.readBigUInt64LE(at)));
  const log = await stat(`${path}.wal`).then(
    ({ size }) => size,
    () => 0,
  );
  return { changes: Math.max(...numbers), log };
}
