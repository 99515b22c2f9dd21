import type { connectionStreams, connections } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Actor } from '../events/emit.ts';
import type { Queue } from '../queue/boss.ts';

export interface StartRun {
  connection: typeof connections.$inferSelect;
  /** The streams to move, selected ones of the connection. */
  streams: (typeof connectionStreams.$inferSelect)[];
  run_type: 'plain' | 'custom' | 'full_refresh';
  trigger_type: 'schedule' | 'manual' | 'api' | 'rerun' | 'custom_plan' | 'automation';
  actor: Actor;
  rerun_of_run_id?: string;
  custom_run_parameters?: Record<string, unknown>;
}

/**
 * Makes run row, stream runs, event and jobs in the caller's transaction; answers with the run's id.
 * @throws ApiError 400 `run_already_active` with `connection_run_id` when a plain run is live.
 */
export declare function startRun(db: Db, queue: Queue, input: StartRun): Promise<string>;

/**
 * Asks a run to stop, in the caller's transaction. Answers with the run's id, or null when it had ended already.
 * Streams that no worker holds end at once; workers are told by NOTIFY.
 */
export declare function requestStop(
  db: Db,
  input: { connection_run_id: string; actor: Actor; reason: string | null },
): Promise<string | null>;
