import { type AccountConnectorRow, type SECRET_PURPOSES, secretUses } from '../../db/schema/index.ts';
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
    await deps.db.insert(secretUses).values({
      ...use,
      account_id: row.account_id,
      account_connector_id: row.id,
      host,
      actor_type: actor.type,
      actor_id: actor.id,
      occurred_at: deps.now().toISOString(),
    });
  };
