import type { Connect } from './connect.ts';
import type { Inbox } from './inbox.ts';
import type { Dataset, StreamSchema } from './stream.ts';
import type { SessionKeeper } from '../../platform/net/kept-sessions.ts';
import type { WatchedSession } from './watched-session.ts';

/** Everything a connector may use. There is no other way to the network, the disk or the clock. */
export interface ConnectorContext<Config> {
  config: Config;
  /** Sends HTTP requests: checks the address, and records and redacts every attempt. */
  fetch: typeof globalThis.fetch;
  /** Opens sockets for every other protocol: checks the address and uses the SSH tunnel if the user configured one. */
  connect: Connect;
  /** Records network traffic that does not go through `fetch`. */
  recorder: Recorder;
  log: ConnectorLog;
  now(): Date;
  /** Aborted on a stop, a lost lease or a timeout: release everything at once. */
  signal: AbortSignal;
  /** The only folder of this machine that a connector may touch (`DATA_DIR/files` of the first account). */
  filesRoot: string;
  /** Adds a warning to the run, which its user sees. */
  warn(code: string, message: string): void;
  /** Queries that users defined as streams; only for sources with the capability `datasets`. */
  datasets?: readonly Dataset[];
  /** What the service has received for the source; only for sources with a `receiver`. */
  inbox?: Inbox;
  /** Absent: jobs that the connector creates at a service are forgotten when its process ends. */
  jobs?: KeptJobs;
  /**
   * Streams as the last discovery found them. Only for discoveries that no user has asked for: what would be costly to
   * find out may be taken from here.
   */
  known?: readonly StreamSchema[];
  /**
   * Runs `work` on a secret that the service may replace, such as a refresh token, under a lock that all processes share.
   * Absent: secrets cannot be stored.
   * @param given the secret in the settings that the connector was opened with
   */
  rotateSecret?<Result>(given: string, work: (stored: StoredSecret) => Promise<Result>): Promise<Result>;
  /** Reports that the stream waits for quota until then. Call it before sleeping. */
  rateLimited(until: Date): void;
  /** Absent: each session logs in, and logs out. */
  sessions?: SessionKeeper;
  /**
   * Ends the attempt when the session stands still, and reports the locks that it waits for. Returns a function that ends
   * the watch. Absent: each call has to limit its time itself.
   */
  watch?(session: WatchedSession): () => void;
}

/** A job that a service works on for a read, such as an export. */
export interface KeptJob {
  stream: string;
  /** Of the service. */
  id: string;
}

/** Jobs that a read has created and not ended. They are stored, so that the next attempt can end those of a crashed one. */
export interface KeptJobs {
  /** The jobs of earlier attempts. None when it is called again. */
  takeEarlier(): KeptJob[];
  /** Resolves once the job is stored. */
  keep(job: KeptJob): Promise<void>;
  /** Nothing is left to be done about the job. */
  release(job: KeptJob): Promise<void>;
}

export interface ConnectorLog {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
}

/** A secret as it is stored now. */
export interface StoredSecret {
  /** The stored value, which another process may have replaced. Null: it was removed, or the settings changed. */
  current: string | null;
  /** Replaces `used` by `replacement`. @returns false if `used` is not stored any more */
  replace(used: string, replacement: string): Promise<boolean>;
}

/** Writes entries of the network log. */
export interface Recorder {
  start(request: RequestRecord): PendingRequest;
}

/** An entry that `Recorder.start` began. Call exactly one of these, once. */
export interface PendingRequest {
  done(response: ResponseRecord, timings?: RequestTimings): void;
  failed(code: string, message: string): void;
}

/** A request before redaction. The recorder truncates bodies. */
export interface RequestRecord {
  method: string;
  url: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: string | null;
  body_bytes?: number;
}

export interface ResponseRecord {
  status: number | null;
  headers?: Record<string, string>;
  body?: string | null;
  body_bytes?: number;
  /** Whether `body` is only the beginning. */
  is_incomplete?: boolean;
}

/** Durations in milliseconds. */
export interface RequestTimings {
  dns?: number;
  connect?: number;
  tls?: number;
  wait?: number;
  receive?: number;
}
