import type { DestinationSyncMode, HeldPosition, StreamState } from '../connectors/contract/connector.ts';

/** What the control database knows about a stream. */
interface KnownPosition {
  state: StreamState | null;
  /** `state_version` of the last commit that the destination confirmed; null: there is nothing to compare. */
  committed_version: number | null;
  destination_sync_mode: DestinationSyncMode;
}

/**
 * How an incremental stream continues at the destination that was opened.
 *
 * - `continue`: the destination holds every commit that it confirmed.
 * - `go_back`: it holds an older commit and continues from there.
 * - `restart`: its table, the rows in it, or its record of commits are gone, and a read from the start restores all rows.
 * - `refuse`: rows are there and their position is not, so reading them again would append them twice.
 */
type Continuation = 'continue' | 'go_back' | 'restart' | 'refuse';

/** Pure. @param held null: the destination stores no state */
export function continuationOf(known: KnownPosition, held: HeldPosition | null): Continuation {
  if (held === null || known.committed_version === null) return 'continue';
  if (!held.has_table || held.was_emptied) return 'restart';
  if (held.state_version >= known.committed_version) return 'continue';
  if (held.state !== null) return 'go_back';
  return known.destination_sync_mode === 'append' ? 'refuse' : 'restart';
}

/** Both positions and the commits they belong to. */
export function positionsText({ state, committed_version }: KnownPosition, held: HeldPosition): string {
  const holds =
    held.state_version === 0 ? 'has no record of a commit' : `is at ${place(held.state, held.state_version)}`;
  return `the destination ${holds}, and the last run reached ${place(state, committed_version)}`;
}

const place = (state: StreamState | null, version: number | null) =>
  `${state?.cursor == null ? 'its start' : `cursor ${state.cursor}`} (commit ${version})`;
