import { inArray } from 'drizzle-orm';
import { connectionStreams } from '../../../db/schema/index.ts';
import { onSide } from '../../connector-runtime/side-error.ts';
import type { Batch, ReadRequest, ReplicationWriter, StreamState } from '../../connectors/contract/connector.ts';
import { RetryableError } from '../../connectors/contract/errors.ts';
import { type Attempt, ClaimLost } from '../attempt.ts';
import { resumeState } from '../destination-position.ts';
import { createMapper } from '../mapping.ts';
import { openSides, type PreparedStream, prepareStream, stateVersion } from '../move-stream.ts';
import { ofEach } from './attempts-failed.ts';
import { refuseParked } from './parking.ts';

export type OpenSides = Awaited<ReturnType<typeof openSides>>;

/** A stream of a pass. */
export interface Member {
  attempt: Attempt;
  prepared: PreparedStream;
  map(batch: Batch): Batch;
  request: ReadRequest;
  /** Of the last commit at the destination. */
  state_version: number;
  /** As recorded last. */
  committed: StreamState | null;
}

/** The streams as they are now, each with what its read needs. @throws StreamsFailed */
export async function prepareAll(
  attempts: readonly Attempt[],
  { source, destination }: OpenSides,
): Promise<PreparedStream[]> {
  await reload(attempts);
  return ofEach(attempts, async (attempt) => {
    refuseParked(attempt);
    const stream = await prepareStream(attempt, source, destination.connector);
    if (stream.requestFrom(null).reader_id !== undefined) return stream;
    const { name } = stream.schema;
    throw new RetryableError(
      'table_changed',
      `${name} is no longer read from the log. The next attempt reads its table`,
    );
  });
}

/** An earlier pass may have moved the streams, or applied changes of their tables. */
async function reload(attempts: readonly Attempt[]): Promise<void> {
  const [leader] = attempts as [Attempt];
  const ids = attempts.map(({ claim }) => claim.stream.id);
  const rows = await leader.deps.db.select().from(connectionStreams).where(inArray(connectionStreams.id, ids));
  for (const { claim } of attempts) claim.stream = rows.find(({ id }) => id === claim.stream.id) ?? claim.stream;
}

/** Where each stream continues. @throws StreamsFailed */
export const membersOf = (
  attempts: readonly Attempt[],
  { source }: OpenSides,
  opened: { prepared: readonly PreparedStream[]; streams: ReplicationWriter['streams']; reader_id: string },
): Promise<Member[]> =>
  ofEach(attempts, async (attempt, at): Promise<Member> => {
    const prepared = opened.prepared[at]!;
    const stream = opened.streams[at]!;
    const { canResume } = source.connector;
    const serves = async (state: StreamState) => {
      const request = prepared.requestFrom(state);
      const inCommon = canResume?.(source.ctx, { ...request, reader_id: opened.reader_id }) ?? true;
      return onSide('source', async () => (await inCommon) || canResume!(source.ctx, request));
    };
    const request = prepared.requestFrom(await resumeState(attempt, stream, serves));
    const state_version = stateVersion(attempt, stream);
    return { attempt, prepared, map: mapperOf(attempt, prepared), request, state_version, committed: request.state };
  });

export function mapperOf({ claim, deps }: Attempt, { plan }: PreparedStream): Member['map'] {
  const keepsHistory = claim.stream.destination_sync_mode === 'append';
  return createMapper(plan, deps.secrets.maskKeys(claim.run.account_id), keepsHistory);
}

export const lost = () => new ClaimLost('Another worker holds a stream of this run');

/** A truncate is a change without a row. */
export const countRows = ({ rows, changes, lines }: Batch) =>
  lines ? lines.rows : changes ? changes.filter(({ operation }) => operation !== 'truncate').length : rows.length;
