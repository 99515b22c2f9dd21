import type { ConnectorContext, OriginComparison } from '../../contract/connector.ts';
import { withSession } from '../connection/session.ts';
import type { MysqlSourceConfig } from '../connection/settings.ts';

type Context = ConnectorContext<MysqlSourceConfig>;

/** Which server was read, and the transactions that it had before the read. */
type ServerOrigin = {
  /** Null: MariaDB before it had one. */
  server: string | null;
  /** As MySQL writes sets (`uuid:1-5`), or MariaDB its positions (`domain-server-number`). Null: none are kept. */
  gtids: string | null;
  /** A replica may lag behind what was read elsewhere, and gets it later. */
  is_replica: boolean;
};

/** What a state holds at most. */
const MAX_LENGTH = 4_000;
const NAMES = [
  'server_uuid',
  'server_uid',
  'gtid_executed',
  'gtid_current_pos',
  'read_only',
  'wsrep_on',
  'aurora_version',
];

/** Null: nodes that take turns, such as Galera's and Aurora's, have names and positions of their own. */
export const findOrigin = (ctx: Context): Promise<ServerOrigin | null> =>
  withSession(ctx, { phase: 'run' }, async (session) => {
    const list = NAMES.map((name) => `'${name}'`).join(', ');
    const { rows } = await session.query(`show global variables where variable_name in (${list})`);
    const values = new Map(rows.map(([name, value]) => [name, value?.replaceAll(/\s/g, '')]));
    if (values.get('wsrep_on') === 'ON' || values.has('aurora_version')) return null;
    const server = values.get('server_uuid') || values.get('server_uid') || null;
    const gtids = values.get('gtid_executed') || values.get('gtid_current_pos') || null;
    if ((server === null && gtids === null) || (gtids ?? '').length > MAX_LENGTH) return null;
    const found: ServerOrigin = { server, gtids, is_replica: values.get('read_only') !== 'OFF' };
    return found;
  });

export async function compareOrigins(
  _ctx: Context,
  known: ServerOrigin,
  found: ServerOrigin,
): Promise<OriginComparison> {
  const kept: OriginComparison = { history: 'kept', difference: '', origin: found };
  const comparable = known.gtids !== null && found.gtids !== null;
  if (comparable && contains(found.gtids!, known.gtids!)) return kept;
  if (found.is_replica) return { ...kept, origin: known };
  if (comparable) {
    return {
      history: 'lost',
      difference: `it was read ${at(known)}, and the server is now ${at(found)}`,
      origin: found,
    };
  }
  if (known.server === found.server || known.server === null || found.server === null) return kept;
  const difference = `it was read from the server ${known.server}, and this is ${found.server}`;
  return { history: 'unknown', difference, origin: found };
}

const at = ({ server, gtids }: ServerOrigin) => `at GTID ${gtids}${server === null ? '' : ` of the server ${server}`}`;

/** Whether a server with the transactions `all` has all of `some`. */
export function contains(all: string, some: string): boolean {
  const has = transactions(all);
  return [...transactions(some)].every(([origin, ranges]) =>
    ranges.every(([from, to]) => has.get(origin)?.some(([start, end]) => start <= from && to <= end)),
  );
}

/** By UUID (and tag) or domain: the numbers, as joined ranges. A position of MariaDB stands for all numbers up to it. */
function transactions(text: string): Map<string, [bigint, bigint][]> {
  const found = new Map<string, [bigint, bigint][]>();
  for (const part of text.toLowerCase().split(',')) {
    const position = /^(\d+)-\d+-(\d+)$/.exec(part);
    if (position) {
      found.set(position[1]!, [[0n, BigInt(position[2]!)]]);
      continue;
    }
    let [origin = '', ...items] = part.split(':');
    const uuid = origin;
    for (const item of items) {
      const range = /^(\d+)(?:-(\d+))?$/.exec(item);
      if (range) add(found, origin, [BigInt(range[1]!), BigInt(range[2] ?? range[1]!)]);
      else origin = `${uuid}:${item}`;
    }
  }
  return found;
}

const add = (found: Map<string, [bigint, bigint][]>, origin: string, range: [bigint, bigint]) =>
  found.set(origin, [...(found.get(origin) ?? []), range]);
