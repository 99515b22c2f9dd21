import type { PgSession } from '../connection/session.ts';
import type { HeldBytes } from './held-rows.ts';

/** Of a session that writes: a worker that freezes in the middle of a commit must not hold its locks for ever. */
const LIMIT = "idle_in_transaction_session_timeout = '60s'";
export const LIMITS = `set ${LIMIT}`;

/** While rows are only staged, there are none: they may wait for the source, or for the commit of another session. */
const STAGING = "set local idle_in_transaction_session_timeout = '15min'";

/** The commit does not wait for the disk. The next one that does covers it. */
export const UNFLUSHED = 'set local synchronous_commit = off';

/**
 * Whether commits may be made so: not where they wait for standbys as well, since after a failover readers would miss what
 * they have seen. Where no commit waits for the disk, there is nothing to gain.
 */
export const FLUSHES_ALONE = `case pg_catalog.current_setting('synchronous_commit') when 'off' then false when 'local' then true
  else pg_catalog.current_setting('synchronous_standby_names') = '' end`;

/** A session and its open transaction. `common`: several writers use them, and what they share is ended elsewhere. */
export class LoadTransaction {
  #open = false;
  /** It holds no locks on rows yet. */
  #stages = false;
  readonly held: HeldBytes = { bytes: 0 };
  /** Deferrable constraints are checked at the end of each transaction. */
  defers = false;

  constructor(
    readonly session: PgSession,
    readonly common = false,
  ) {}

  get isOpen(): boolean {
    return this.#open;
  }

  get beginning(): string[] {
    return this.defers ? ['begin', 'set constraints all deferred'] : ['begin'];
  }

  /** It begins with the next statement, in the same message. */
  begin(): void {
    if (this.#open) return;
    this.session.ahead([...this.beginning, ...(this.common ? [STAGING] : [])].join('; '));
    this.#open = true;
    this.#stages = this.common;
  }

  /** What follows locks rows, and is no COPY. */
  endStaging(): void {
    if (this.#stages) this.session.ahead(`set local ${LIMIT}`);
    this.#stages = false;
  }

  async commit({ flushes = true } = {}): Promise<void> {
    if (this.#open && !flushes) this.session.ahead(UNFLUSHED);
    if (this.#open) await this.session.query('commit', { slow: true });
    [this.#open, this.#stages] = [false, false];
  }

  /** The last one. Resolves with its end, or with `seen` if that is true; the session may then be busy for a while. */
  async commitSeen(seen: Promise<boolean>): Promise<void> {
    await this.session.commitSeen(seen);
    [this.#open, this.#stages] = [false, false];
  }
}
