import type { Database } from 'bun:sqlite';
import type { LogicalType } from '../contract/connector.ts';
import { breathe, type Context, identifier } from './database.ts';
import { type Candidate, isUndeclared } from './types.ts';

/** Of an integer that SQLite shifts bits in. */
const BITS = 60;
const TURN_ROWS = 5_000;

interface CandidateColumn {
  name: string;
  declared: string;
  candidates: Candidate[];
}

/**
 * The best type for each column that all its values have. Reads all rows once: one bit for each type that a column might
 * have and one value does not.
 */
export async function fittingTypes(
  ctx: Context,
  database: Database,
  { from, columns }: { from: string; columns: CandidateColumn[] },
): Promise<LogicalType[]> {
  const checks = columns.flatMap(({ name, declared, candidates }, at) => {
    const column = `t.${identifier(name)}`;
    const found = candidates.map(({ misfit }, rank) => ({ at, rank, sql: misfit(column) }));
    // Nothing is known of a column without a type and without values.
    return isUndeclared(declared) ? [...found, { at, rank: -1, sql: 'true' }] : found;
  });
  const words = Array.from({ length: Math.ceil(checks.length / BITS) }, (_, word) =>
    checks.slice(word * BITS, (word + 1) * BITS).map(({ at, sql }, bit) => {
      const column = `t.${identifier((columns[at] as CandidateColumn).name)}`;
      return `((${column} is not null and ${sql}) << ${bit})`;
    }),
  );
  const seen = words.map(() => 0n);
  const select = words.map((word, at) => `${word.join(' | ')} as w${at}`).join(', ') || '1 as w0';
  let rows = 0;
  const statement = database.prepare<Record<string, bigint>, []>(`select ${select} from ${from}`);
  for (const row of statement.iterate()) {
    for (let word = 0; word < seen.length; word++) seen[word] = (seen[word] as bigint) | (row[`w${word}`] as bigint);
    rows += 1;
    if (rows % TURN_ROWS > 0) continue;
    await breathe();
    ctx.signal.throwIfAborted();
  }
  const isSet = (check: number) => (((seen[Math.floor(check / BITS)] as bigint) >> BigInt(check % BITS)) & 1n) === 1n;
  return columns.map(({ candidates }, at) => {
    const own = checks.flatMap((check, index) => (check.at === at ? [{ ...check, set: isSet(index) }] : []));
    if (own.some(({ rank, set }) => rank === -1 && !set)) return 'string';
    const fit = own.find(({ rank, set }) => rank >= 0 && !set);
    return fit ? (candidates[fit.rank]?.type ?? 'string') : 'string';
  });
}
