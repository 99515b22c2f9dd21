import type { ApiClient } from '../../../api.ts';
import type { Cli } from '../../context.ts';
import type { Connection } from '../connections.ts';
export type Sequences = Awaited<ReturnType<ApiClient['cut_over']['advanceSequences']['mutate']>>;

/** What the steps of a migration share. */
export interface Migration {
  cli: Cli;
  api: ApiClient;
  connection: Connection;
  flags: Migrating;
}

export interface Migrating {
  json: boolean;
  yes: boolean;
  maxLag?: number;
  wait?: number;
  stopWrites?: string;
  verifyOnce: boolean;
}
