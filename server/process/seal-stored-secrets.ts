import { and, eq, gt, inArray, sql } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  accountConnectors,
  events,
  type TriggerRow,
  triggers,
} from '../../db/schema/index.ts';
import { openActions, sealActions } from '../automation/triggers/action-secrets.ts';
import { openParameters } from '../connector-runtime/connector-secrets.ts';
import type { AnyConnector } from '../connectors/contract/connector.ts';
import { keyedAddressNames, secretNames } from '../connectors/contract/parameters.ts';
import { findConnector } from '../connectors/registry.ts';
import type { Deps } from '../deps.ts';
import { MASK } from '../platform/mask.ts';
import { maskAddresses } from '../resources/account-connectors/secrets/keyed-addresses.ts';
import { sealParameters } from '../resources/account-connectors/parameters.ts';

/**
 * Seals headers and addresses with credentials that earlier versions stored in clear text, and removes their signed
 * links of exports that still work. A migration in SQL cannot seal because it has no key. Rows that are sealed already
 * do not change, so it is safe at every start.
 */
export async function sealStoredSecrets(deps: Deps): Promise<void> {
  const stored = { type: accountConnectors.connector_type, name: accountConnectors.connector_name };
  const used = await deps.db.selectDistinct(stored).from(accountConnectors);
  const names = used.filter(hasKeyedAddress).map(({ name }) => name);
  const connectors = await deps.db
    .select()
    .from(accountConnectors)
    .where(inArray(accountConnectors.connector_name, names));
  for (const row of connectors.filter(hasClearSecret))
    await skippingUnreadable(deps, row, () => sealConnector(deps, row));
  const hooks = await deps.db
    .select()
    .from(triggers)
    .where(sql`${triggers.actions} @> '[{"type": "call_webhook"}]'::jsonb`);
  await deps.db
    .update(events)
    .set({ payload: sql`${events.payload} - 'url'` })
    .where(and(eq(events.event, 'metadata_export_succeeded'), gt(events.occurred_at, sql`now() - interval '2 days'`)));
  for (const row of hooks) await skippingUnreadable(deps, row, () => sealTrigger(deps, row));
}

function hasKeyedAddress({ type, name }: Pick<AnyConnector, 'type' | 'name'>): boolean {
  const connector = findConnector(type, name);
  return connector !== undefined && keyedAddressNames(connector.config).length > 0;
}

function hasClearSecret(row: AccountConnectorRow): boolean {
  const connector = findConnector(row.connector_type, row.connector_name);
  if (!connector) return false;
  const isClear = (value: unknown) => value != null && value !== MASK;
  return (
    secretNames(connector.config).some((name) => isClear(row.parameters[name])) ||
    keyedAddressNames(connector.config).some((name) => maskAddresses(row.parameters[name]) !== row.parameters[name])
  );
}

async function sealConnector(deps: Deps, row: AccountConnectorRow): Promise<void> {
  const connector = findConnector(row.connector_type, row.connector_name);
  if (!connector) return;
  const all = Object.entries(openParameters(deps, row)).filter(([, value]) => !Bun.deepEquals(value, {}));
  const sealed = sealParameters(deps, connector, { row, all: Object.fromEntries(all) });
  // The secrets of a deleted row are wiped.
  const kept = row.deleted_at === null ? sealed : { ...sealed, secrets: null };
  await deps.db
    .update(accountConnectors)
    .set({ ...kept, updated_at: sql`${accountConnectors.updated_at}` })
    .where(sql`${eq(accountConnectors.id, row.id)} and ${eq(accountConnectors.revision, row.revision)}`);
}

async function sealTrigger(deps: Deps, row: TriggerRow): Promise<void> {
  const whole = openActions(deps.secrets, row);
  const sealed = sealActions(deps.secrets, { trigger: row, actions: whole, before: null });
  if (Bun.deepEquals(sealed.actions, row.actions)) return;
  await deps.db
    .update(triggers)
    .set({ ...sealed, updated_at: sql`${triggers.updated_at}` })
    .where(sql`${eq(triggers.id, row.id)} and ${eq(triggers.updated_at, row.updated_at)}`);
}

/** A row whose secrets were encrypted with another SECRET_KEY must not end the start. */
async function skippingUnreadable(deps: Deps, row: { id: string }, work: () => Promise<void>): Promise<void> {
  await work().catch((error: unknown) => deps.log.warn({ err: error, id: row.id }, 'stored secrets were not sealed'));
}
