import type { StreamState, Writer } from '../connectors/contract/connector.ts';
import { ConfigurationError } from '../connectors/contract/errors.ts';
import { onSide } from '../connector-runtime/side-error.ts';
import { emitPositionEvent } from '../events/stream-events.ts';
import { continuationOf, positionsText } from '../pipeline/destination-position.ts';
import { isForgotten } from '../runs/forgotten-runs.ts';
import type { Attempt } from './attempt.ts';

/**
 * The state that a read resumes from: where the destination really is, which may be behind what it confirmed (a restored
 * backup, a failover, a dropped table). Going back is a warning of the run and an event.
 * @param serves whether the source still has everything after a state
 * @throws SideError of the destination with a ConfigurationError `destination_went_back`
 */
export async function resumeState(
  attempt: Attempt,
  writer: Pick<Writer, 'committed' | 'held'>,
  serves: (state: StreamState) => Promise<boolean>,
): Promise<StreamState | null> {
  const { stream } = attempt.claim;
  if (stream.sync_mode !== 'incremental') return null;
  const { committed, held } = writer;
  const how = continuationOf(stream, held);
  if (how === 'continue' || held === null) {
    // The destination's state wins when it is ahead: it was committed together with the rows. One that was set here is
    // ahead of it, also if the destination's is of an earlier attempt of this stream run.
    if (held?.lost_columns?.length) warnAboutLostColumns(attempt, held.lost_columns);
    const ahead = committed && committed.state_version > stream.state_version;
    return ahead ? committed.state : stream.state;
  }
  const positions = positionsText(stream, held);
  if (how === 'refuse' || (how === 'go_back' && !(await serves(held.state!)))) {
    const because =
      how === 'refuse'
        ? 'Reading from the start would append all rows again'
        : 'The source no longer has the changes since';
    return onSide('destination', async () => {
      throw new ConfigurationError(
        'destination_went_back',
        `${stream.name} cannot continue: ${positions}. ${because}. Reset the cursor to read the whole stream again, or set it to the value to read on from`,
      );
    });
  }
  const code = held.has_table ? 'destination_went_back' : 'destination_table_missing';
  const found = !held.has_table
    ? 'its table no longer exists at the destination'
    : held.was_emptied
      ? 'its table at the destination was emptied'
      : positions;
  const text = `${stream.name}: ${found}. It is read again ${how === 'restart' ? 'from the start' : 'from there'}`;
  attempt.warn(code, text);
  await attempt.deps.db.transaction((tx) =>
    emitPositionEvent(tx, {
      stream,
      summary: text,
      cursor_before: stream.state?.cursor ?? null,
      cursor_now: how === 'go_back' ? held.state!.cursor : null,
    }),
  );
  return how === 'restart' ? null : held.state;
}

/** They are not filled by themselves: who removed a column may not miss its values. */
function warnAboutLostColumns(attempt: Attempt, columns: readonly string[]): void {
  const { name } = attempt.claim.stream;
  attempt.warn(
    'columns_lost',
    `${name}: columns that earlier runs wrote no longer existed at the destination and were added again: ${columns.join(', ')}. Rows loaded earlier have no value in them until they change at the source or the stream's cursor is reset`,
  );
}

/**
 * Only a control database that was restored from an older backup does not know the stream run that committed last. A run
 * that is in the backup may have appended its rows already, and a full refresh has no position that shows it.
 * @throws SideError of the destination with a ConfigurationError `destination_went_ahead`, once for each such commit
 */
export async function refuseUnknownCommit(attempt: Attempt, { held }: Pick<Writer, 'held'>): Promise<void> {
  const { stream, stream_run, run } = attempt.claim;
  const appends = stream.sync_mode === 'full_refresh' && stream.destination_sync_mode === 'append';
  // Each chunk of a custom run has a record of its own.
  if (!appends || run.custom_run_plan_id !== null || !held?.has_table || held.was_emptied) return;
  const last = held.stream_run_id;
  if (last === null || !(await isForgotten(attempt.deps.db, stream_run, last))) return;
  await onSide('destination', async () => {
    throw new ConfigurationError(
      'destination_went_ahead',
      `The last rows of ${stream.name} were committed by stream run ${last}, which this service does not know: its control database was restored from a backup. ` +
        'The rows of this run may be in the table already, so none were appended. Compare the table with the source, and run the stream again to append all rows',
    );
  });
}
