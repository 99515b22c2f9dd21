import type { LockHolder, SessionState, WatchedSession } from '../connectors/contract/connector.ts';
import { TimeoutError } from '../connectors/contract/errors.ts';
import { SideError } from '../connector-runtime/side-error.ts';
import { type Periodic, periodic } from '../platform/periodic.ts';

type Side = 'source' | 'destination';

export interface WatchLimits {
  /** Silence of both sides that ends the attempt. */
  idle_ms: number;
  /** Wait for one lock that ends the attempt. */
  lock_ms: number;
}

/** What the watchdog does to its attempt. */
export interface WatchReport {
  stream_name: string;
  end(reason: SideError): void;
  /** Adds a warning, and returns the function that replaces its text. */
  warn(code: string, message: string): (message: string) => void;
  /** The watch itself failed. */
  failed(error: unknown): void;
}

interface Watched {
  side: Side;
  sign: string | null;
  wait: LockWait | null;
}

/** All waits for the same lock of the same sessions: one warning. */
interface LockWait {
  /** Parts of the text of a wait that is over. */
  waited: string;
  held: string;
  /** Null: it is over. */
  since: number | null;
  waited_ms: number;
  reword(message: string): void;
}

/** The first look comes after this share of the limit, and later ones after this share of the silence so far. */
const FIRST_LOOK = 1 / 15;
const LATER_LOOK = 1 / 8;
const MAX_LOOK_PAUSE_MS = 30_000;
/** For the connection and the queries of a look. */
const LOOK_MS = 6_000;
const TICK_MS = 1_000;
const TICKS_PER_LIMIT = 30;

/**
 * Ends an attempt whose sides stand still. It counts the time in which a session has to take the next step and nothing
 * passes on either side. During it, the watchdog asks the server about the session over another connection: a statement
 * that works, or a lock that it waits for, is not silence. Whatever waits without such a session, such as a pause for a
 * rate limit or a request over HTTP, has a limit of its own.
 */
export class Watchdog {
  readonly #sessions = new Map<WatchedSession, Watched>();
  readonly #waits = new Map<string, LockWait>();
  /** Pulses of sessions that have ended. */
  #ended = 0;
  #pulse = -1;
  #silent_ms = 0;
  /** The part of the silence at whose end a server showed that it works. */
  #alive_ms = 0;
  #next_look_ms = 0;
  #turned = performance.now();
  readonly #tick_ms: number;
  #turns: Periodic | null = null;

  constructor(
    private readonly limits: WatchLimits,
    private readonly report: WatchReport,
  ) {
    this.#tick_ms = Math.min(TICK_MS, limits.idle_ms / TICKS_PER_LIMIT);
  }

  start(): void {
    const options = { every_ms: this.#tick_ms, jitter: 0, onError: (error: unknown) => this.report.failed(error) };
    this.#turns ??= periodic(() => this.#turn(), options);
  }

  /** Does not wait for a look that is under way. */
  stop(): void {
    void this.#turns?.stop();
    for (const wait of this.#waits.values()) endWait(wait);
  }

  /** @returns a function that ends the watch */
  add(side: Side, session: WatchedSession): () => void {
    const watched: Watched = { side, sign: null, wait: null };
    this.#sessions.set(session, watched);
    return () => {
      if (!this.#sessions.delete(session)) return;
      this.#ended += session.pulse() + 1;
      endWait(watched.wait);
    };
  }

  #pulseNow = () => [...this.#sessions.keys()].reduce((sum, session) => sum + session.pulse(), this.#ended);

  async #turn(): Promise<void> {
    // Counted in turns: a process that was suspended has not listened meanwhile.
    const elapsed = Math.min(performance.now() - this.#turned, 2 * this.#tick_ms);
    this.#turned = performance.now();
    const pulse = this.#pulseNow();
    const waiting = [...this.#sessions].filter(([session]) => session.waits());
    if (pulse !== this.#pulse || waiting.length === 0) {
      this.#pulse = pulse;
      return this.#restart();
    }
    this.#silent_ms += elapsed;
    if (this.#silent_ms >= this.#next_look_ms) await this.#lookAt(waiting);
  }

  async #lookAt(waiting: [WatchedSession, Watched][]): Promise<void> {
    const { idle_ms } = this.limits;
    const began = performance.now();
    const states = await Promise.all(waiting.map(([session]) => stateOf(session)));
    this.#turned = performance.now();
    // What a look found may be over.
    if (this.#pulseNow() !== this.#pulse) return;
    this.#silent_ms += this.#turned - began;
    const alive = waiting.filter(([session, watched], at) => this.#isAlive(session, watched, states[at]!));
    if (alive.length > 0) this.#alive_ms = this.#silent_ms;
    const pause = Math.max(FIRST_LOOK * idle_ms, LATER_LOOK * this.#silent_ms);
    this.#next_look_ms = this.#silent_ms + Math.min(pause, MAX_LOOK_PAUSE_MS, idle_ms / 2);
    if (this.#silent_ms - this.#alive_ms < idle_ms) return;
    const at = Math.max(
      waiting.findIndex(([, { side }]) => side === 'destination'),
      0,
    );
    const [{ server }, { side }] = waiting[at]!;
    const did = side === 'source' ? 'sent' : 'accepted';
    const text = `the ${side} ${server} ${did} nothing for ${seconds(idle_ms)}. ${reasonOf(states[at]!)}`;
    this.#end(side, `${side}_silent`, `${text}. Check the server and the network to it`);
  }

  #isAlive(session: WatchedSession, watched: Watched, found: SessionState): boolean {
    if (found.state === 'blocked') return this.#isWithinLimit(session, watched, found);
    endWait(watched.wait);
    if (found.state !== 'working') return false;
    const advances = watched.sign !== null && watched.sign !== found.sign;
    watched.sign = found.sign;
    return advances || !found.must_advance;
  }

  #isWithinLimit({ server }: WatchedSession, watched: Watched, { on, holders }: Blocked): boolean {
    const { side } = watched;
    const held = heldText(holders);
    const key = [side, server, on, ...holders.map((holder) => holder.session)].join(' ');
    const now = `The ${side} ${server} waits for a lock on ${on}, ${held}`;
    let wait = this.#waits.get(key);
    if (!wait) {
      wait = {
        waited: `The ${side} ${server} waited`,
        held,
        since: null,
        waited_ms: 0,
        reword: this.report.warn('lock_wait', now),
      };
      this.#waits.set(key, wait);
    }
    if (watched.wait !== wait) endWait(watched.wait);
    watched.wait = wait;
    wait.since ??= performance.now();
    wait.held = `for a lock on ${on}, ${held}`;
    wait.reword(now);
    if (performance.now() - wait.since < this.limits.lock_ms) return true;
    const text = `the ${side} ${server} waited ${seconds(this.limits.lock_ms)} ${wait.held}`;
    this.#end(side, 'lock_timeout', `${text}. End that session, or wait until it has ended`);
    return true;
  }

  #restart(): void {
    this.#silent_ms = 0;
    this.#alive_ms = 0;
    this.#next_look_ms = FIRST_LOOK * this.limits.idle_ms;
    for (const [session, { wait }] of this.#sessions) if (!session.waits()) endWait(wait);
  }

  #end(side: Side, code: string, text: string): void {
    this.report.end(new SideError(side, new TimeoutError(code, `${this.report.stream_name}: ${text}`)));
  }
}

type Blocked = SessionState & { state: 'blocked' };

function endWait(wait: LockWait | null): void {
  if (wait?.since == null) return;
  wait.waited_ms += performance.now() - wait.since;
  wait.since = null;
  wait.reword(`${wait.waited} ${seconds(wait.waited_ms)} ${wait.held}`);
}

/** A look that fails says as much as one that finds nothing. */
async function stateOf(session: WatchedSession): Promise<SessionState> {
  let timer: Timer | undefined;
  const late = new Promise<SessionState>((resolve) => {
    timer = setTimeout(() => resolve({ state: 'lost', reason: 'It does not answer on another connection' }), LOOK_MS);
  });
  const looked = session.look().catch((error: unknown): SessionState => {
    const why = error instanceof Error ? error.message : String(error);
    return { state: 'lost', reason: `It does not answer on another connection: ${why}` };
  });
  return Promise.race([looked, late]).finally(() => clearTimeout(timer));
}

const reasonOf = (found: SessionState) =>
  found.state === 'lost' ? found.reason : 'It shows the session as active, without progress';

function heldText(holders: LockHolder[]): string {
  if (holders.length === 0) return 'held by a session that the server does not show';
  return `held by ${holders.map(holderText).join(' and ')}`;
}

function holderText({ session, user, application, state, since, statement }: LockHolder): string {
  const about = [
    user && `user ${user}`,
    application && `application ${application}`,
    state && (since ? `${state}, transaction since ${since}` : state),
    statement && `last statement ${statement}`,
  ].filter(Boolean);
  return `session ${session}${about.length > 0 ? ` (${about.join(', ')})` : ''}`;
}

const seconds = (ms: number) => `${Math.max(1, Math.round(ms / 1000))} s`;
