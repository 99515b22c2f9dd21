import type { StoredWarning } from '../../db/schema/index.ts';
import type { Recorder } from '../connectors/contract/connector.ts';
import type { Deps } from '../deps.ts';
import type { Redactor } from '../platform/redaction/redact.ts';
import { type Claim, type Progress, recordProgress } from '../runs/claim-stream.ts';
import { redactorOf } from '../connector-runtime/connector-secrets.ts';
import type { SecretUse } from '../connector-runtime/secret-uses.ts';
import type { ConnectorHooks } from '../connector-runtime/open-connector.ts';
import { AttemptLog } from './attempt-log.ts';
import { keptJobsOf } from './kept-jobs.ts';
import { Lease } from './lease.ts';
import { limitMemoryGrowth } from './pace/limit-memory-growth.ts';
import { useOfRun } from './use-of-run.ts';
import { NetworkLog } from '../connector-runtime/network-log/network-log.ts';
import { Watchdog } from './watchdog.ts';
import { markRateLimited } from '../runs/rate-limits.ts';

const HEARTBEAT_MS = 1000;
const MAX_WARNINGS = 100;

/** A stop of the run was requested. */
export class StopRequested extends Error {}
/** Another worker holds the claim now. */
export class ClaimLost extends Error {}
/** This worker is shutting down. */
export class WorkerStopping extends Error {}

/** One attempt at a stream in this worker: its progress, heartbeat, abort signal and network logs. */
export class Attempt {
  readonly progress: Progress;
  /** Those of earlier attempts included. */
  readonly warnings: StoredWarning[];
  readonly redactor: Redactor;
  readonly log: AttemptLog;
  readonly #abort = new AbortController();
  readonly #logs: { source: NetworkLog; destination: NetworkLog };
  readonly #cleanUps: (() => Promise<void>)[] = [];
  #timer: Timer | undefined;
  readonly #watchdog: Watchdog;
  /** Warnings as of the last heartbeat. */
  #stored_warnings: string;
  #lease: Lease | null = null;
  #heartbeat: Promise<void> | null = null;

  /** @param provenAt when the last heartbeat was sent that the control database has recorded, by `performance.now` */
  constructor(
    readonly deps: Deps,
    readonly claim: Claim,
    private provenAt = performance.now(),
  ) {
    const { stream_run, run, source, destination } = claim;
    this.warnings = [...stream_run.warnings];
    this.#stored_warnings = JSON.stringify(this.warnings);
    const isResumed = hasCommitted(stream_run);
    this.progress = {
      rows_read: isResumed ? stream_run.rows_read : 0,
      bytes_read: isResumed ? stream_run.bytes_read : 0,
      rows_loaded: stream_run.rows_loaded,
      rows_updated: stream_run.rows_updated,
      rows_deleted: stream_run.rows_deleted,
      bytes_loaded: stream_run.bytes_loaded,
      log_lag_bytes: stream_run.log_lag_bytes,
      requests_count: stream_run.requests_count,
      estimated_rows: stream_run.estimated_rows,
      first_row_at: stream_run.first_row_at,
      rate_limited_until: null,
      source_snapshot: stream_run.source_snapshot,
    };
    this.redactor = redactorOf(deps, [source, destination]);
    this.log = new AttemptLog(stream_run.attempt, this.redactor, deps.now);
    const log = (connector_type: 'source' | 'destination') =>
      new NetworkLog(
        deps,
        {
          account_id: run.account_id,
          connection_run_id: run.id,
          stream_run_id: stream_run.id,
          stream_name: stream_run.stream_name,
          connector_type,
          attempt: stream_run.attempt,
        },
        this.redactor,
      );
    this.#logs = { source: log('source'), destination: log('destination') };
    const { IDLE_LIMIT_SECONDS, LOCK_WAIT_LIMIT_SECONDS } = deps.config;
    this.#watchdog = new Watchdog(
      { idle_ms: IDLE_LIMIT_SECONDS * 1000, lock_ms: LOCK_WAIT_LIMIT_SECONDS * 1000 },
      {
        stream_name: stream_run.stream_name,
        end: (reason) => this.abort(reason),
        warn: (code, message) => this.#openWarning(code, message),
        failed: (error) => deps.log.warn({ err: error, stream_run_id: stream_run.id }, 'watch of an attempt failed'),
      },
    );
  }

  get run_id(): string {
    return this.claim.run.id;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  hooks(side: 'source' | 'destination'): ConnectorHooks {
    const recorder: Recorder = this.#logs[side];
    return {
      use: useOf(this.claim),
      recorder,
      signal: this.signal,
      keeps_sessions: true,
      cleanUp: (work) => void this.#cleanUps.push(work),
      warn: (code, message) => this.warn(code, message),
      watch: (session) => this.#watchdog.add(side, session),
      ...(side === 'source' && { jobs: keptJobsOf(this.deps, this.claim) }),
      ...(side === 'destination' && { beforeSend: () => this.#lease?.assert() }),
      rateLimited: (until) => {
        if (this.progress.rate_limited_until === null) {
          this.note('rate_limited', `The ${side} limits the request rate. Requests go on at ${until.toISOString()}`);
        }
        this.progress.rate_limited_until = until.toISOString();
        this.heartbeat();
      },
    };
  }

  /** A line in the log of the run. */
  note(code: string, message: string): void {
    this.log.add('info', code, message);
  }

  warn(code: string, message: string): void {
    const text = this.redactor.text(message);
    if (this.warnings.some((known) => known.code === code && known.message === text)) return;
    this.log.add('warning', code, text);
    if (this.warnings.length >= MAX_WARNINGS) return;
    this.warnings.push({ code, message: text, stream_name: this.claim.stream_run.stream_name });
  }

  /** A warning whose text changes while the attempt goes on. */
  #openWarning(code: string, message: string): (message: string) => void {
    this.warn(code, message);
    const opened = this.redactor.text(message);
    const added = this.warnings.find((known) => known.code === code && known.message === opened);
    return (text) => {
      if (added) added.message = this.redactor.text(text);
    };
  }

  /** Ends the attempt before its lease does: for a destination that would accept rows of two workers at once. */
  limitToLease(): void {
    this.#lease ??= new Lease(this.provenAt, (reason) => this.abort(reason));
  }

  /** Counts rows that arrived from the source. */
  recordRead(rows: number, bytes: number): void {
    this.progress.rows_read += rows;
    this.progress.bytes_read += bytes;
    limitMemoryGrowth(bytes);
    this.progress.rate_limited_until = null;
    this.progress.first_row_at ??= this.deps.now().toISOString();
  }

  start(): void {
    this.#timer = setInterval(() => this.heartbeat(), HEARTBEAT_MS);
    this.watch();
  }

  /** Ends the attempt when its sides stand still. */
  watch(): void {
    this.#watchdog.start();
  }

  /** Records progress, renews the claim and checks for a stop. One at a time. */
  heartbeat(): void {
    this.#heartbeat ??= this.#sendHeartbeat().finally(() => {
      this.#heartbeat = null;
    });
  }

  /** Brings the progress and the network logs up to date. */
  countRequests(): void {
    const { source, destination } = this.#logs;
    this.progress.requests_count = this.claim.stream_run.requests_count + source.requests + destination.requests;
    source.flushOld();
    destination.flushOld();
    this.log.addProgress(this.progress);
  }

  async #sendHeartbeat(): Promise<void> {
    this.countRequests();
    const sentAt = performance.now();
    try {
      const { rate_limited_until } = this.progress;
      if (rate_limited_until !== null) await markRateLimited(this.deps.db, this.claim, rate_limited_until);
      const warnings = JSON.stringify(this.warnings);
      const news = warnings === this.#stored_warnings ? {} : { warnings: this.warnings };
      const { lines } = this.log;
      const status = await recordProgress(this.deps.db, this.claim, { ...this.progress, ...news, lines });
      this.#stored_warnings = warnings;
      this.log.stored(lines.length);
      if (status === null) this.abort(new ClaimLost('Another worker holds this stream'));
      else this.#prove(sentAt);
      if (status === 'stopping') this.abort(new StopRequested('A stop of the run was requested'));
    } catch (error) {
      // The database may be unavailable for a moment. If for longer, the lease expires and the fence protects the rows.
      this.deps.log.warn({ err: error }, 'heartbeat failed');
    }
  }

  #prove(sentAt: number): void {
    this.provenAt = sentAt;
    this.#lease?.renew(sentAt);
  }

  abort(reason: Error): void {
    if (!this.signal.aborted) this.#abort.abort(reason);
  }

  shutDown(): void {
    this.abort(new WorkerStopping('The worker is shutting down'));
  }

  /** Closes the connectors' tunnels, stops the heartbeat and stores the remaining log entries, or warns. Never throws. */
  async close(): Promise<void> {
    this.#watchdog.stop();
    await Promise.allSettled(this.#cleanUps.map((work) => work()));
    clearInterval(this.#timer);
    this.#lease?.close();
    await this.#heartbeat;
    const { source, destination } = this.#logs;
    this.progress.requests_count = this.claim.stream_run.requests_count + source.requests + destination.requests;
    for (const lost of await NetworkLog.close(this.deps.db, [source, destination])) this.warn('network_log_lost', lost);
  }
}

/** What a run uses secrets for, and what started it. */
function useOf({ run, stream_run }: Claim): SecretUse {
  return { ...useOfRun(run), stream_run_id: stream_run.id };
}

/** Whether this attempt goes on from what earlier ones have committed, so that what they have read is part of the run. */
const hasCommitted = ({ cursor_after, rows_loaded, rows_deleted }: Claim['stream_run']): boolean =>
  cursor_after !== null || rows_loaded + rows_deleted > 0;
