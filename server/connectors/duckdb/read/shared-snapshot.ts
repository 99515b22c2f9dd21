import { stat } from 'node:fs/promises';
import type { ConnectorContext, SharedSnapshot, SnapshotKeeper } from '../../contract/connector.ts';
import { RetryableError } from '../../contract/errors.ts';
import { SNAPSHOT_LOST } from '../../contract/snapshot.ts';
import type { Place } from '../connection/failures.ts';
import { existingFile, openForReaders } from '../connection/file-access.ts';
import type { DuckDbSourceConfig } from '../connection/settings.ts';

type Context = ConnectorContext<DuckDbSourceConfig>;

/** Nothing can be written to a file that is open: what is read from it until `close` is of one moment. */
export async function keepSnapshot(ctx: Context): Promise<SnapshotKeeper> {
  const file = await existingFile(ctx);
  const close = await openForReaders(ctx, file);
  try {
    const snapshot = await stateOf(file);
    return { snapshot, check: () => assertAt(file, snapshot), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** @throws RetryableError `snapshot_lost` for a file that was replaced, or of another machine */
export async function assertAt(file: Place, snapshot: SharedSnapshot): Promise<void> {
  const found = await stateOf(file);
  if (found.name === snapshot.name) return;
  throw new RetryableError(SNAPSHOT_LOST, `"${file.name}" is not the file of the snapshot. A new one is opened`);
}

async function stateOf({ path }: Place): Promise<SharedSnapshot> {
  const { ino, size, mtimeMs } = await stat(path);
  return { name: `${ino}:${size}:${mtimeMs}` };
}
