/**
 * A moment of a source that several reads share, on any worker. `name` identifies it to the source. The other entries
 * identify the server, so that a reader which reaches another one notices. Only the connector that created it reads them.
 */
export type SharedSnapshot = { name: string } & Record<string, string>;

/** Holds a snapshot open. Reads join it until `close`, and keep it afterwards. */
export interface SnapshotKeeper {
  readonly snapshot: SharedSnapshot;
  /** @throws RetryableError `snapshot_lost` when no read can join any more */
  check(): Promise<void>;
  /** Always resolves. */
  close(): Promise<void>;
}

/** The code of errors of reads that cannot join a snapshot: it is gone, or belongs to another server. */
export const SNAPSHOT_LOST = 'snapshot_lost';

/** The tables of a run that become visible together. */
export interface PublishGroup {
  /** As in the `WriteTarget` of each stream. */
  connection_id: string;
  schema: string | null;
  publish_with: string;
  streams: PublishedStream[];
}

export interface PublishedStream {
  stream_id: string;
  stream_run_id: string;
  /** The fence of the attempt that finished the table. */
  fence: number;
}
