import { open } from 'node:fs/promises';
import type { OriginComparison } from '../../../contract/connector.ts';

/** How often the file of a database was written. */
export type FileOrigin = {
  /** The counter in its header. */
  changes: number;
  /** Bytes of the log beside it that holds what was written since. */
  log: number;
};

/** The first bytes of a file; null: it is shorter. */
export async function headerOf(path: string, length: number): Promise<Buffer | null> {
  const file = await open(path);
  try {
    const header = Buffer.alloc(length);
    const { bytesRead } = await file.read(header, 0, length, 0);
    return bytesRead < length ? null : header;
  } finally {
    await file.close();
  }
}

/** A lower counter is that of an older copy, or of a file that was built again: the rows decide. */
export async function compareFileOrigins(
  _ctx: unknown,
  known: FileOrigin,
  found: FileOrigin,
): Promise<OriginComparison> {
  const isOlder = found.changes < known.changes || (found.changes === known.changes && found.log < known.log);
  const difference = `the file was read at ${text(known)}, and is now at ${text(found)}`;
  return { history: isOlder ? 'unknown' : 'kept', difference, origin: found };
}

const text = ({ changes, log }: FileOrigin) => `change ${changes}${log > 0 ? ` and ${log} bytes of its log` : ''}`;
