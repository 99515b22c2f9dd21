import type { AccountConnectorRow } from '../../../db/schema/index.ts';
import type { Deps } from '../../deps.ts';

/** A row of an account connector without settings, which is not stored yet. */
export function draftRow(
  deps: Pick<Deps, 'now'>,
  { account_id, user_id }: { account_id: string; user_id: string },
  { name, connector_type, connector_name }: Pick<AccountConnectorRow, 'name' | 'connector_type' | 'connector_name'>,
): AccountConnectorRow {
  const now = deps.now().toISOString();
  return {
    id: Bun.randomUUIDv7(),
    account_id,
    name,
    connector_type,
    connector_name,
    status: 'pending_test',
    status_reason: null,
    status_message: null,
    auth_method: 'none',
    parameters: {},
    secrets: null,
    ssh_tunnel: null,
    datasets: [],
    last_test: { status: 'skipped', checks: [] },
    last_tested_at: null,
    credentials_expire_at: null,
    announced_days: [],
    catalog_status: 'never',
    catalog_refreshed_at: null,
    failure_streak: 0,
    retest_at: null,
    retests: 0,
    free_until: null,
    free_end_told_at: null,
    owner: null,
    created_by: user_id,
    created_at: now,
    updated_at: now,
    revision: 1,
    deleted_at: null,
  };
}
