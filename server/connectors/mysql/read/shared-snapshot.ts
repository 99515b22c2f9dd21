import type { ConnectorContext, ReadRequest, SnapshotKeeper, StreamSchema } from '../../contract/connector.ts';
import { RetryableError } from '../../contract/errors.ts';
import { SNAPSHOT_LOST } from '../../contract/snapshot.ts';
import { MysqlSession, type OpenConnection } from '../connection/session.ts';
import type { MysqlSourceConfig } from '../connection/settings.ts';
import { relation } from '../connection/sql.ts';
import { standStill } from './stand-still.ts';

type Context = ConnectorContext<MysqlSourceConfig>;

const REPEATABLE = 'set transaction isolation level repeatable read';
const START = 'start transaction with consistent snapshot, read only';

/** One snapshot for all statements of a read. */
export async function beginSnapshot(session: MysqlSession): Promise<void> {
  await session.query(REPEATABLE);
  await session.query(START);
}

/** The snapshots that this process holds, by name. */
const pools = new Map<string, SnapshotPool>();

/**
 * Opens a transaction for each reader while nothing can be committed: a server of this kind cannot share a snapshot
 * between connections. One more connection stays idle, so that the snapshot outlives reads that fail.
 */
export async function keepSnapshot(
  ctx: Context,
  streams: readonly Pick<StreamSchema, 'namespace' | 'name'>[],
  readers: number,
): Promise<SnapshotKeeper> {
  const sessions: MysqlSession[] = [];
  const name = crypto.randomUUID();
  try {
    for (let at = 0; at <= readers; at++) sessions.push(await MysqlSession.open(ctx, { phase: 'run' }));
    for (const session of sessions) await session.query(REPEATABLE);
    const tables = await standStill(
      ctx,
      streams.map((stream) => stream.name),
      async () => void (await Promise.all(sessions.map((session) => session.query(START)))),
    );
    // Each holds the definitions of all tables: one that waited behind an ALTER TABLE would wait for the others.
    await Promise.all(sessions.map((session) => holdTables(session, ctx.config.database, tables)));
    const [keeper, ...others] = sessions as [MysqlSession, ...MysqlSession[]];
    const pool = new SnapshotPool((await Promise.all(others.map((session) => session.handOver()))).filter(isOpen));
    pools.set(name, pool);
    const close = async () => {
      pools.delete(name);
      ctx.signal.removeEventListener('abort', letGo);
      await Promise.all([keeper.close(), pool.close(ctx)]);
    };
    const letGo = () => void close();
    ctx.signal.addEventListener('abort', letGo, { once: true });
    return {
      snapshot: { name },
      check: () => keeper.query('select 1').then(noResult, lost),
      close,
    };
  } catch (error) {
    await Promise.all(sessions.map((session) => session.close()));
    throw error;
  }
}

const isOpen = (connection: OpenConnection | null) => connection !== null;
const noResult = () => {};

async function holdTables(session: MysqlSession, database: string, tables: readonly string[]): Promise<void> {
  for (const table of tables) await session.query(`select 1 from ${relation(database, table)} limit 0`);
}

function lost(error: unknown): never {
  const reason = error instanceof Error ? error.message : 'the connection that held it has ended';
  throw new RetryableError(
    SNAPSHOT_LOST,
    `The snapshot of the run cannot be read any more: ${reason}. A new one is opened`,
  );
}

/** Connections in transactions of the same moment. Each serves one read at a time. */
class SnapshotPool {
  readonly #free: OpenConnection[];
  readonly #waiting: (() => void)[] = [];
  #count: number;
  #closed = false;

  constructor(connections: OpenConnection[]) {
    this.#free = connections;
    this.#count = connections.length;
  }

  /** @throws RetryableError `snapshot_lost` */
  async take(ctx: Context): Promise<MysqlSession> {
    for (;;) {
      ctx.signal.throwIfAborted();
      if (this.#closed || this.#count === 0) lost(new Error('none of its connections is left'));
      const connection = this.#free.pop();
      if (connection) return MysqlSession.of(ctx, connection);
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
        ctx.signal.addEventListener('abort', () => resolve(), { once: true });
      });
    }
  }

  async giveBack(ctx: Context, session: MysqlSession): Promise<void> {
    const connection = await session.handOver();
    if (connection) this.#free.push(connection);
    else this.#count -= 1;
    if (this.#closed) await this.close(ctx);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Reads that have a connection close it themselves. */
  async close(ctx: Context): Promise<void> {
    this.#closed = true;
    for (const wake of this.#waiting.splice(0)) wake();
    await Promise.all(this.#free.splice(0).map((connection) => MysqlSession.of(ctx, connection).close()));
  }
}

/** A session in a transaction of its own, or of the snapshot that is asked for, and how to end its use. */
export interface ReadSession {
  session: MysqlSession;
  close(): Promise<void>;
}

/** @throws RetryableError `snapshot_lost` if this process does not hold the snapshot */
export async function openToRead(ctx: Context, { snapshot }: ReadRequest): Promise<ReadSession> {
  if (snapshot) {
    const pool = pools.get(snapshot.name) ?? lost(new Error('this process does not hold it'));
    const session = await pool.take(ctx);
    return { session, close: () => pool.giveBack(ctx, session) };
  }
  const session = await MysqlSession.open(ctx, { phase: 'run' });
  const close = () => session.close();
  try {
    await beginSnapshot(session);
    return { session, close };
  } catch (error) {
    await close();
    throw error;
  }
}
