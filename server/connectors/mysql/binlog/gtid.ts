/** A transaction of MariaDB's log. Numbers grow within a domain. */
export interface Gtid {
  domain: number;
  server: number;
  number: bigint;
}

/** The last transaction of each domain. */
export type Position = ReadonlyMap<number, Gtid>;

const ITEM = /^(\d{1,10})-(\d{1,10})-(\d{1,20})$/;

/** Null: not a position. */
export function parsePosition(text: string): Position | null {
  const position = new Map<number, Gtid>();
  if (text.trim() === '') return position;
  for (const item of text.split(',')) {
    const [, domain, server, number] = ITEM.exec(item.trim()) ?? [];
    if (number === undefined || position.has(Number(domain))) return null;
    position.set(Number(domain), { domain: Number(domain), server: Number(server), number: BigInt(number) });
  }
  return position;
}

export const gtidText = ({ domain, server, number }: Gtid): string => `${domain}-${server}-${number}`;

/** By domain, so that equal positions have equal texts. */
export const positionText = (position: Position): string =>
  Array.from(position.values())
    .toSorted((a, b) => a.domain - b.domain)
    .map(gtidText)
    .join(',');

export const covers = (position: Position, { domain, number }: Gtid): boolean =>
  (position.get(domain)?.number ?? 0n) >= number;

/** Whether everything before `other` is before `position`. */
export const contains = (position: Position, other: Position): boolean =>
  Array.from(other.values()).every((gtid) => covers(position, gtid));

/** Where the log has to be read from, so that nothing after any of the positions is missing. */
export function lowestOf(positions: readonly Position[]): Position {
  const lowest = new Map<number, Gtid>();
  const [first = new Map<number, Gtid>(), ...others] = positions;
  for (const gtid of first.values()) {
    const all = [gtid, ...others.map((one) => one.get(gtid.domain))];
    // A position without the domain is before its first transaction.
    if (all.includes(undefined)) continue;
    lowest.set(gtid.domain, all.reduce((low, one) => (one!.number < low!.number ? one : low))!);
  }
  return lowest;
}

export function highestOf(some: Position, others: Position): Position {
  const highest = new Map(some);
  for (const gtid of others.values()) if (!covers(highest, gtid)) highest.set(gtid.domain, gtid);
  return highest;
}
