import type { ConnectorContext, ReadRequest } from '../../contract/connector.ts';
import { BEGIN } from './shared-snapshot.ts';
import { PgSession } from '../connection/session.ts';
import { WAITING } from '../connection/waiting.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { literal, relation } from '../connection/sql.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

const lock = ({ stream }: ReadRequest) => `lock table ${relation(stream.namespace!, stream.name)} in access share mode`;

/** Prevents TRUNCATE, rewrites and DROP of the table until the end of the transaction. */
export const holdTable = (session: PgSession, request: ReadRequest) => session.query(lock(request));

/**
 * The snapshot of a transaction, shared with more connections. Connections can join until that transaction ends, and
 * then keep the snapshot. Each locks the table before it reads: a connection that waited behind an ALTER TABLE until the
 * others finish would find a table without the rows of its snapshot.
 */
export class Snapshot {
  /** Connections that read or are joining. */
  readers = 1;
  readonly #helpers = new Set<PgSession>();
  /** How many are joining. One that could not stays among them, so that no other is tried. */
  #joining = 0;
  #closed = false;

  private constructor(
    private readonly ctx: Context,
    private readonly request: ReadRequest,
    private readonly id: string,
  ) {}

  /** `session` must be in a transaction of isolation level repeatable read. */
  static async of(ctx: Context, session: PgSession, request: ReadRequest): Promise<Snapshot> {
    const { rows } = await session.query('select pg_export_snapshot()');
    return new Snapshot(ctx, request, rows[0]?.[0] ?? '');
  }

  /**
   * Opens more connections, up to `limit` in all, and hands them over. If that fails (connection limit,
   * another server behind a load balancer, a waiting ALTER TABLE), the read continues without and opens no further ones.
   */
  join(limit: number, use: (session: PgSession) => void): void {
    if (this.#joining > 0) return;
    this.#joining = Math.min(WAITING.more * this.readers, limit - this.readers);
    for (let left = this.#joining; left > 0; left -= 1) this.#joinOne(use);
  }

  #joinOne(use: (session: PgSession) => void): void {
    this.readers += 1;
    this.#open().then(
      (session) => this.#handOver(session, use),
      (error: unknown) => {
        if (!this.#closed && !this.ctx.signal.aborted)
          this.ctx.log.warn('reading the table with fewer connections', { reason: String(error) });
      },
    );
  }

  async #handOver(session: PgSession, use: (session: PgSession) => void): Promise<void> {
    this.#joining -= 1;
    // The read has ended in the meantime.
    if (this.#closed) return session.close();
    this.#helpers.add(session);
    use(session);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#helpers].map((helper) => helper.close()));
  }

  async #open(): Promise<PgSession> {
    const session = await PgSession.open(this.ctx, { phase: 'run' });
    try {
      await session.query(BEGIN);
      await session.query(`set transaction snapshot ${literal(this.id)}`);
      await session.query(`${lock(this.request)} nowait`);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }
}
