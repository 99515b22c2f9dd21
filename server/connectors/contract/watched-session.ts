/** Another session of a server that holds a lock. A field that the server does not show is null. */
export interface LockHolder {
  session: string;
  user: string | null;
  application: string | null;
  /** Such as `idle in transaction`. */
  state: string | null;
  /** Instant at which its transaction began. */
  since: string | null;
  /** Kind of its last statement, such as `UPDATE`. Never its text, which contains values. */
  statement: string | null;
}

/** What a session does while a call waits for it, as its server shows it. */
export type SessionState =
  /**
   * It executes a statement. `sign` changes as it gets on, as far as the server shows that. `must_advance`: rows pass, so
   * that a session without a new sign stands still; otherwise a sort, a merge or an index may take any time.
   */
  | { state: 'working'; sign: string; must_advance: boolean }
  /** It waits for a lock on `on`. Without holders: the server does not show them. */
  | { state: 'blocked'; on: string; holders: LockHolder[] }
  /** The server waits for this process, or has no such session: an answer or a request was lost. */
  | { state: 'lost'; reason: string };

/** A session of another system on which a call can wait without end. */
export interface WatchedSession {
  /** Such as `db.example.com:5432`. */
  readonly server: string;
  /** Grows with every statement, and with every byte of rows. */
  pulse(): number;
  /** The server has to take the next step. False while this process has to read or write more. */
  waits(): boolean;
  /** Looks at the session over another connection. Throws when the server does not answer. */
  look(): Promise<SessionState>;
}
