import { and, eq, inArray, isNull } from 'drizzle-orm';
import {
  accountConnectors,
  type AppliedItem,
  connections,
  connectionStreams,
  triggers,
} from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';

type Settings = Record<string, unknown>;

/** What can be compared of an item, by the keys of a file. */
interface Comparable {
  name: string;
  settings: Settings;
}

/** The items of an account, by id. Secrets are left out: they cannot be compared without being decrypted. */
export async function readItems(
  db: Db,
  { account_id, items }: { account_id: string; items: readonly Pick<AppliedItem, 'kind' | 'id'>[] },
): Promise<Map<string, Comparable>> {
  const of = (...kinds: AppliedItem['kind'][]) => items.filter(({ kind }) => kinds.includes(kind)).map(({ id }) => id);
  return new Map([
    ...(await readConnectors(db, account_id, of('source', 'destination'))),
    ...(await readConnections(db, account_id, of('connection'))),
    ...(await readTriggers(db, account_id, of('trigger'))),
  ]);
}

type Read = [id: string, item: Comparable][];

async function readConnectors(db: Db, account_id: string, ids: string[]): Promise<Read> {
  const { deleted_at } = accountConnectors;
  const rows = await db
    .select()
    .from(accountConnectors)
    .where(and(eq(accountConnectors.account_id, account_id), inArray(accountConnectors.id, ids), isNull(deleted_at)));
  return rows.map(({ id, name, connector_name, ...settings }) => [
    id,
    { name, settings: { ...settings, connector: connector_name } },
  ]);
}

async function readConnections(db: Db, account_id: string, ids: string[]): Promise<Read> {
  const own = and(eq(connections.account_id, account_id), inArray(connections.id, ids), isNull(connections.deleted_at));
  const rows = await db.select().from(connections).where(own);
  const selected = and(inArray(connectionStreams.connection_id, ids), eq(connectionStreams.selected, true));
  const streams = Map.groupBy(
    await db.select().from(connectionStreams).where(selected),
    ({ connection_id }) => connection_id,
  );
  return rows.map(({ id, name, source_id, destination_id, ...settings }) => {
    const own_streams = (streams.get(id) ?? []).map((stream) => [streamName(stream), stream]);
    const ends = { source: source_id, destination: destination_id };
    return [id, { name, settings: { ...settings, ...ends, streams: Object.fromEntries(own_streams) } }];
  });
}

const streamName = ({ namespace, name }: { namespace: string | null; name: string }) => `${namespace ?? ''}.${name}`;

async function readTriggers(db: Db, account_id: string, ids: string[]): Promise<Read> {
  const rows = await db
    .select()
    .from(triggers)
    .where(and(eq(triggers.account_id, account_id), inArray(triggers.id, ids), isNull(triggers.deleted_at)));
  return rows.map(({ id, name, case_settings, ...settings }) => [
    id,
    { name, settings: { ...settings, case: case_settings } },
  ]);
}

/** A digest of the value of each setting that a file names, and of the name. */
export function digestsOf({ name, settings }: Comparable, named: Settings): Record<string, string> {
  const all = Object.entries(named).map(([key, shape]) => [
    key,
    digest(key === 'streams' ? pickedStreams(shape, settings[key]) : picked(shape, settings[key])),
  ]);
  return { ...Object.fromEntries(all), name: digest(name) };
}

/** With the names of the streams that the file does not name: `apply` would deselect them. */
const pickedStreams = (shape: unknown, value: unknown) => [
  isObject(value) ? Object.keys(value).toSorted() : [],
  picked(shape, value),
];

/** The part of a value that a file names. */
function picked(shape: unknown, value: unknown): unknown {
  if (!isObject(shape) || !isObject(value)) return value ?? null;
  return Object.keys(shape)
    .toSorted()
    .map((key) => [key, picked(shape[key], value[key])]);
}

const isObject = (value: unknown): value is Settings =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** PostgreSQL orders the keys of jsonb, so that equal values have equal texts. */
const digest = (value: unknown): string =>
  new Bun.CryptoHasher('sha256').update(JSON.stringify(value) ?? 'null').digest('base64');
