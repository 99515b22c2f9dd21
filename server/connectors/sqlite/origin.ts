import { findFiles } from '../kits/files/stores/local-files.ts';
import { type FileOrigin, headerOf } from '../kits/sql/cursors/file-origin.ts';
import type { Context } from './database.ts';

/** The header has a counter of changes: four bytes at this place. */
const CHANGES_AT = 24;
const HEADER_LENGTH = 100;

/** Null: the file is missing or no database, which the read reports. The log is written in circles and tells nothing. */
export async function findOrigin(ctx: Context): Promise<FileOrigin | null> {
  const [file] = await findFiles(ctx.filesRoot, ctx.config.path);
  const header = file ? await headerOf(file.path, HEADER_LENGTH) : null;
  return header && { changes: header.readUInt32BE(CHANGES_AT), log: 0 };
}
