import type { Deps } from '../../deps.ts';
import { type Periodic, periodic } from '../../platform/periodic.ts';
import { activeSpan, inSpan, type Span } from '../../platform/tracing/span.ts';
import { recordSharedProgress } from '../../runs/claim-stream.ts';
import { endAttempt } from '../../runs/end-attempt.ts';
import { isContinuous } from '../../pipeline/schedule.ts';
import { type Attempt, ClaimLost, StopRequested, WorkerStopping } from '../attempt.ts';
import { classifyError } from '../classify-error.ts';
import { runAttributes, streamAttributes } from '../trace-attributes.ts';
import type { Outcome } from '../../runs/outcome.ts';

const HEARTBEAT_MS = 1000;
/** A run of a continuous connection that could not keep a stream for now ends this much later, and the next one tries. */
const TRY_AGAIN_MS = 60_000;
/** Time for a run that follows the log to end at a border of transactions when the worker shuts down. */
const ROLL_OVER_MS = 3_000;

/** Attempts at streams of one run that are read from one log, or from a snapshot of this process: one heartbeat for all. */
export class SharedAttempts {
  #timer: Periodic | null = null;
  #live: Attempt[];
  #leader: Attempt | null = null;
  readonly #abort = new AbortController();
  readonly #finished = new Set<Attempt>();
  readonly #spans = new Map<Attempt, Span>();
  /** At once: the worker shuts down, or settings have changed. */
  readonly #rollOver = new AbortController();
  /** The run has lasted long enough. */
  readonly #due = new AbortController();
  readonly #timeouts: Timer[] = [];
  readonly run_id: string;
  /** The run reads on at the end of the log. */
  readonly is_continuous: boolean;
  private readonly connection: Attempt['claim']['connection'];

  constructor(
    private readonly deps: Deps,
    attempts: readonly Attempt[],
    private readonly from: 'log' | 'snapshot',
  ) {
    const { connection, run } = attempts[0]!.claim;
    this.#live = [...attempts];
    this.is_continuous = from === 'log' && isContinuous(connection.schedule) && run.custom_run_plan_id === null;
    this.run_id = run.id;
    this.connection = connection;
  }

  /** Those that have not ended. */
  get attempts(): readonly Attempt[] {
    return this.#live;
  }

  /** Those that have not ended, and have not reached the end of their run. */
  get pending(): readonly Attempt[] {
    return this.#live.filter((attempt) => !this.#finished.has(attempt));
  }

  /** Its final commit is recorded: it succeeds with the others. */
  finish(attempt: Attempt): void {
    this.#finished.add(attempt);
  }

  /** Aborted when the run is to end. Copies hold up only the end that comes with its time. */
  rollOvers(is_copying: boolean): AbortSignal[] {
    return is_copying ? [this.#rollOver.signal] : [this.#rollOver.signal, this.#due.signal];
  }

  /** Whether the run ends with a read that followed the log. @param is_whole it had all streams of the run */
  endsNow(is_whole: boolean): boolean {
    return this.#rollOver.signal.aborted || (is_whole && this.#due.signal.aborted);
  }

  /** Records progress, renews the claims and checks for a stop, again and again. */
  start(): void {
    this.#lead();
    const onError = (error: unknown) => this.deps.log.warn({ err: error }, 'heartbeat failed');
    this.#timer = periodic(() => this.#send(), { every_ms: HEARTBEAT_MS, onError });
    // Which streams are selected may have changed since another worker began the run.
    const isTakenOver = this.#live.some(({ claim }) => claim.stream_run.attempt > 1);
    if (this.is_continuous) this.#rollOverIn(isTakenOver ? 0 : this.deps.config.CONTINUOUS_RUN_MINUTES * 60_000);
  }

  heartbeat(): void {
    this.#timer?.wake();
  }

  /** The sessions of streams of a log are all those of the first attempt, so it notices when they stand still. */
  #lead(): void {
    if (this.from !== 'log') return;
    const [leader] = this.#live;
    if (!leader || leader === this.#leader) return;
    this.#leader = leader;
    leader.watch();
    leader.signal.addEventListener('abort', () => this.abort(leader.signal.reason), { once: true });
  }

  async #send(): Promise<void> {
    const live = this.#live;
    if (live.length === 0) return;
    for (const attempt of live) attempt.countRequests();
    // If the database is unavailable for long, the lease expires and the fence protects the rows.
    const held = live.map(({ claim, progress, warnings, log: { lines } }) => ({ claim, progress, warnings, lines }));
    const found = await recordSharedProgress(this.deps.db, held);
    for (const [at, { log }] of live.entries()) log.stored(held[at]!.lines.length);
    // One has ended meanwhile.
    if (live.length !== this.#live.length) return;
    if (found === null) this.abort(new ClaimLost('Another worker holds a stream of this run'));
    else if (found.status === 'stopping') this.abort(new StopRequested('A stop of the run was requested'));
    else if (this.is_continuous && isChanged(found, this.connection)) this.#rollOver.abort();
  }

  #rollOverIn(ms: number): void {
    this.#timeouts.push(setTimeout(() => this.#due.abort(), ms));
  }

  /** Ends the attempts, at a border of transactions where there is time for it. */
  shutDown(): void {
    const abort = () => this.abort(new WorkerStopping('The worker is shutting down'));
    if (!this.is_continuous) return abort();
    this.#rollOver.abort();
    this.#timeouts.push(setTimeout(abort, ROLL_OVER_MS));
  }

  /** Aborted when all of them are. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  abort(reason: Error): void {
    if (!this.signal.aborted) this.#abort.abort(reason);
    for (const attempt of this.#live) attempt.abort(reason);
  }

  /** Reads the log within a span and, below it, one for each stream, which ends with its attempt. */
  traced<Result>(work: () => Promise<Result>): Promise<Result> {
    const attributes = runAttributes(this.#live[0]!.claim);
    return inSpan('read log', { attributes }, async () => {
      for (const attempt of this.#live) {
        const span = activeSpan()?.child('move stream', { attributes: streamAttributes(attempt.claim) });
        if (span) this.#spans.set(attempt, span);
      }
      try {
        return await work();
      } catch (error) {
        for (const span of this.#spans.values()) span.fail(error);
        throw error;
      } finally {
        for (const attempt of this.#spans.keys()) this.#endSpan(attempt);
      }
    });
  }

  #endSpan(attempt: Attempt): void {
    this.#spans.get(attempt)?.end();
    this.#spans.delete(attempt);
  }

  /** Ends one attempt with its error; the others go on. */
  async fail(attempt: Attempt, error: unknown): Promise<void> {
    this.#spans.get(attempt)?.fail(error);
    const classified = await classifyError(this.deps, attempt, error);
    const outcome = this.is_continuous && classified?.kind === 'retry' ? failed(classified) : classified;
    await this.end(attempt, async () => {
      if (!outcome) return;
      const { claim, progress, warnings, log } = attempt;
      const { db, queue } = this.deps;
      await db.transaction((tx) => endAttempt(tx, queue, { claim, outcome, progress, warnings, lines: log.lines }));
    });
    if (this.is_continuous && classified?.kind === 'retry') this.#rollOverIn(TRY_AGAIN_MS);
    this.#lead();
  }

  /** Ends one attempt, whose outcome `record` stores; the others go on. */
  async end(attempt: Attempt, record: () => Promise<void>): Promise<void> {
    this.#live = this.#live.filter((one) => one !== attempt);
    this.#endSpan(attempt);
    await attempt.close();
    await record();
  }

  /** As `Attempt.close`, for all. */
  async close(): Promise<void> {
    for (const timeout of this.#timeouts) clearTimeout(timeout);
    await this.#timer?.stop();
    await Promise.all(this.#live.map((attempt) => attempt.close()));
  }
}

const isChanged = (now: { connection_status: string; revision: number }, { revision }: { revision: number }) =>
  now.connection_status !== 'active' || now.revision !== revision;

/** In a run that lasts for hours, another attempt comes with the next run. */
const failed = ({ error }: Extract<Outcome, { kind: 'retry' }>): Outcome => ({ kind: 'failed', error });
