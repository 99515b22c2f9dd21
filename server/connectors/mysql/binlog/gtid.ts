import { CannotContinueError } from '../../contract/errors.ts';
import { RESET_HINT } from './reset-hint.ts';

/** A transaction of the log. Numbers grow within a domain: with MySQL that is the UUID of a server. */
export interface Gtid {
  domain: number | string;
  server: number;
  number: bigint;
}

/** The last transaction of each domain. */
export type Position = ReadonlyMap<Gtid['domain'], Gtid>;

const ITEM = /^(\d{1,10})-(\d{1,10})-(\d{1,20})$/;
/** Of MySQL: all transactions of a server up to a number. */
const SET = /^([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}):1(?:-(\d{1,19}))?$/i;

/** Null: not a position, or a set of MySQL in which transactions are missing. */
export function parsePosition(text: string): Position | null {
  const position = new Map<Gtid['domain'], Gtid>();
  if (text.trim() === '') return position;
  for (const item of text.split(',')) {
    const gtid = gtidOf(item.trim());
    if (!gtid || position.has(gtid.domain)) return null;
    position.set(gtid.domain, gtid);
  }
  return position;
}

function gtidOf(item: string): Gtid | null {
  const [, uuid, last = '1'] = SET.exec(item) ?? [];
  if (uuid) return { domain: uuid.toLowerCase(), server: 0, number: BigInt(last) };
  const [, domain, server, number] = ITEM.exec(item) ?? [];
  return number === undefined ? null : { domain: Number(domain), server: Number(server), number: BigInt(number) };
}

export const gtidText = ({ domain, server, number }: Gtid): string =>
  typeof domain === 'string' ? `${domain}:1-${number}` : `${domain}-${server}-${number}`;

/** By domain, so that equal positions have equal texts. */
export const positionText = (position: Position): string =>
  Array.from(position.values())
    .toSorted((a, b) => (a.domain < b.domain ? -1 : 1))
    .map(gtidText)
    .join(',');

export const covers = (position: Position, { domain, number }: Gtid): boolean =>
  (position.get(domain)?.number ?? 0n) >= number;

/**
 * MySQL does not say which transactions come before another one: a later one with a lower number would be taken for read.
 * @throws ConfigurationError `gtids_out_of_order`
 */
export function assertNext(position: Position, { domain, number }: Gtid): void {
  const next = (position.get(domain)?.number ?? 0n) + 1n;
  if (typeof domain !== 'string' || number === next) return;
  throw new CannotContinueError(
    'gtids_out_of_order',
    `The binary log has transaction ${domain}:${number} where ${next} should follow. Set replica_preserve_commit_order = ON on a replica, and do not skip numbers. ${RESET_HINT}`,
  );
}

/** Whether everything before `other` is before `position`. */
export function contains(position: Position, other: Position): boolean {
  for (const gtid of other.values()) if (!covers(position, gtid)) return false;
  return true;
}

/** Where the log has to be read from, so that nothing after any of the positions is missing. */
export function lowestOf(positions: readonly Position[]): Map<Gtid['domain'], Gtid> {
  const lowest = new Map<Gtid['domain'], Gtid>();
  const [first = lowest, ...others] = positions;
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

const UUID_BYTES = 16;

/** As COM_BINLOG_DUMP_GTID has it: by UUID the intervals, whose ends are exclusive. */
export function encodedSet(position: Position): Buffer {
  const gtids = [...position.values()];
  const bytes = Buffer.alloc(8 + gtids.length * (UUID_BYTES + 24));
  bytes.writeBigUInt64LE(BigInt(gtids.length));
  let at = 8;
  for (const { domain, number } of gtids) {
    bytes.write(String(domain).replaceAll('-', ''), at, 'hex');
    for (const [index, value] of [1n, 1n, number + 1n].entries()) {
      bytes.writeBigUInt64LE(value, at + UUID_BYTES + index * 8);
    }
    at += UUID_BYTES + 24;
  }
  return bytes;
}
