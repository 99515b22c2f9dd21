import { sql } from 'drizzle-orm';
import { connectionStreams } from '../../db/schema/index.ts';
import type { StreamState } from '../connectors/contract/connector.ts';

/**
 * After a crash the destination can be ahead by the commits that were not recorded yet. A distance that they never reach
 * makes the control database's state the newer one.
 */
const VERSIONS_AHEAD = 1_000_000;

/**
 * The columns of a stream whose state is set here and not by a commit. It counts more than what the destination holds,
 * which is not compared before the next commit.
 */
export const stateSetTo = (state: StreamState | null) => ({
  state,
  state_version: sql`${connectionStreams.state_version} + ${VERSIONS_AHEAD}`,
  committed_version: null,
});
