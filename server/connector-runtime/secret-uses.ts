import { type AccountConnectorRow, type SECRET_PURPOSES, secretUses } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import type { Actor } from '../events/emit.ts';

/** A piece of work that opens the secrets of an account connector, and what asked for it. */
export interface SecretUse {
  purpose: (typeof SECRET_PURPOSES)[number];
  actor: Pick<Actor, 'type' | 'id'>;
  connection_run_id?: string;
  stream_run_id?: string;
}

/** Records that the work is about to connect to a host. Nothing is recorded of a connector without secrets. */
export const secretUseRecorder =
  (deps: Deps, row: AccountConnectorRow, { actor, ...use }: SecretUse) =>
  async (host: string): Promise<void> => {
    if (row.secrets === null && row.ssh_tunnel === null) return;
    await logOf(deps.db).store({
      ...use,
      account_id: row.account_id,
      account_connector_id: row.id,
      host,
      actor_type: actor.type,
      actor_id: actor.id,
      occurred_at: deps.now().toISOString(),
    });
  };

type Use = typeof secretUses.$inferInsert;

/** Uses that come while an insert runs are the next one: many runs at once then share statements and commits. */
class UseLog {
  #waiting: { use: Use; stored: PromiseWithResolvers<void> }[] = [];
  #isStoring = false;

  constructor(private readonly db: Db) {}

  /** Resolves once the use is committed. */
  store(use: Use): Promise<void> {
    const stored = Promise.withResolvers<void>();
    this.#waiting.push({ use, stored });
    if (!this.#isStoring) void this.#storeAll();
    return stored.promise;
  }

  async #storeAll(): Promise<void> {
    this.#isStoring = true;
    while (this.#waiting.length > 0) {
      const taken = this.#waiting.splice(0);
      try {
        await this.#insert(taken.map(({ use }) => use));
        for (const { stored } of taken) stored.resolve();
      } catch {
        // One of them is refused: the others must not fail with it.
        for (const { use, stored } of taken) await this.#insert([use]).then(stored.resolve, stored.reject);
      }
    }
    this.#isStoring = false;
  }

  async #insert(uses: Use[]): Promise<void> {
    await this.db.insert(secretUses).values(uses);
  }
}

const logs = new WeakMap<Db, UseLog>();

function logOf(db: Db): UseLog {
  const log = logs.get(db) ?? new UseLog(db);
  logs.set(db, log);
  return log;
}
