import { and, eq, isNull } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import { accountConnectors, webhookInboxes } from '../../../db/schema/index.ts';
import type { InboxLimits, Receiver } from '../../connectors/contract/connector.ts';
import { parseParameters } from '../../connectors/contract/parameters.ts';
import { findConnector } from '../../connectors/registry.ts';
import type { Deps } from '../../deps.ts';
import { SYSTEM_ACTOR } from '../../events/emit.ts';
import { readParameters } from '../references/read-parameters.ts';
import { secretUseRecorder } from '../secret-uses.ts';

/** A source with an address, as it was loaded. Commits refuse one that has changed since. */
export interface InboxTarget {
  account_connector_id: string;
  account_id: string;
  name: string;
  address_version: number;
  previous_address_until: string | null;
  revision: number;
  receiver: Receiver<unknown>;
  /** With the secrets. Null: the settings are not complete. */
  config: unknown;
  limits: InboxLimits;
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Secrets by reference can change without a new revision. */
const MAX_AGE_MS = 5 * 60_000;

/** Sources of a process whose settings are decrypted already. */
export class InboxTargets {
  readonly #known = new LRUCache<string, InboxTarget>({ max: 1000, ttl: MAX_AGE_MS });
  /** Requests that arrive together after a start share one load. */
  readonly #loading = new Map<string, Promise<InboxTarget | null>>();

  constructor(private readonly deps: Deps) {}

  async find(id: string): Promise<InboxTarget | null> {
    const known = this.#known.get(id);
    if (known) return known;
    const loading = this.#loading.get(id) ?? this.#load(id).finally(() => this.#loading.delete(id));
    this.#loading.set(id, loading);
    return loading;
  }

  /** For requests that these settings refuse: another process may have changed them. Null: they are as they were. */
  async newer({ account_connector_id: id, revision, address_version }: InboxTarget): Promise<InboxTarget | null> {
    const [now] = await this.deps.db
      .select({ revision: accountConnectors.revision, address_version: webhookInboxes.address_version })
      .from(webhookInboxes)
      .innerJoin(accountConnectors, eq(accountConnectors.id, webhookInboxes.account_connector_id))
      .where(and(eq(webhookInboxes.account_connector_id, id), isNull(accountConnectors.deleted_at)));
    const isSame = now?.revision === revision && now.address_version === address_version;
    return isSame ? null : this.#load(id);
  }

  async #load(id: string): Promise<InboxTarget | null> {
    const target = UUID.test(id) ? await load(this.deps, id) : null;
    if (target) this.#known.set(id, target);
    else this.#known.delete(id);
    return target;
  }
}

async function load(deps: Deps, id: string): Promise<InboxTarget | null> {
  const [found] = await deps.db
    .select({ inbox: webhookInboxes, row: accountConnectors })
    .from(webhookInboxes)
    .innerJoin(accountConnectors, eq(accountConnectors.id, webhookInboxes.account_connector_id))
    .where(and(eq(webhookInboxes.account_connector_id, id), isNull(accountConnectors.deleted_at)));
  if (!found) return null;
  const connector = findConnector('source', found.row.connector_name);
  if (!connector?.receiver) return null;
  const { inbox, row } = found;
  const reach = secretUseRecorder(deps, row, { purpose: 'webhook', actor: SYSTEM_ACTOR });
  const parsed = parseParameters(connector, await readParameters(deps, row, reach));
  return {
    account_connector_id: row.id,
    account_id: row.account_id,
    name: row.name,
    address_version: inbox.address_version,
    previous_address_until: inbox.previous_address_until,
    revision: row.revision,
    receiver: connector.receiver,
    config: 'config' in parsed ? parsed.config : null,
    limits: connector.receiver.limits(row.parameters),
  };
}
