import type { PgSession } from '../connection/session.ts';
import type { HeldBytes } from './held-rows.ts';

/** Of a session that writes: a worker that freezes in the middle of a commit must not hold its locks for ever. */
export const LIMITS = "set idle_in_transaction_session_timeout = '60s'";

/** A session and its open transaction. `common`: several writers use them, and what they share is ended elsewhere. */
export class LoadTransaction {
  #open = false;
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
    if (!this.#open) this.session.ahead(this.beginning.join('; '));
    this.#open = true;
  }

  async commit(): Promise<void> {
    if (this.#open) await this.session.query('commit', { slow: true });
    this.#open = false;
  }
}
