import type { Db } from '../../db/types.ts';
import type { JobDefinition } from './jobs.ts';

export interface SendOptions {
  /** Not before this instant. */
  start_after?: Date;
}

/** The queue. `send` is part of the caller's transaction when `db` is one. */
export interface Queue {
  send<Payload extends object>(
    db: Db,
    job: JobDefinition<Payload>,
    payload: Payload,
    options?: SendOptions,
  ): Promise<void>;
  work<Payload extends object>(
    job: JobDefinition<Payload>,
    concurrency: number,
    handler: (payload: Payload, signal: AbortSignal) => Promise<void>,
  ): Promise<void>;
  stop(): Promise<void>;
}
