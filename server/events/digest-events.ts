import type { Db } from '../../db/types.ts';
import { type Actor, emit, SYSTEM_ACTOR } from './emit.ts';

/** What happened in an account between two digests. Names are shown, at most a few of each. */
export interface Digest {
  from: Date;
  until: Date;
  runs_total: number;
  runs_failed: number;
  rows_loaded: number;
  open_cases: number;
  failed_connections: string[];
  late_connections: string[];
  open_case_titles: string[];
}

export async function emitDailyDigest(db: Db, account_id: string, { from, until, ...facts }: Digest): Promise<void> {
  const { summary, lines } = wordsOf(facts);
  await emit(db, {
    account_id,
    event: 'daily_digest',
    actor: SYSTEM_ACTOR,
    resource: { type: 'account', id: account_id, name: null },
    summary: `Daily digest: ${summary}`,
    payload: {
      ...facts,
      digest: lines.join('\n'),
      digest_from: from.toISOString(),
      digest_until: until.toISOString(),
    },
  });
}

function wordsOf(facts: Omit<Digest, 'from' | 'until'>): { summary: string; lines: string[] } {
  const { runs_total, runs_failed, rows_loaded, open_cases, failed_connections, late_connections } = facts;
  const runs = `${plural(runs_total, 'run')}, ${runs_failed} failed, ${plural(rows_loaded, 'row')}`;
  const cases = plural(open_cases, 'open case');
  const late = late_connections.length === 0 ? 'no data late' : `${plural(late_connections.length, 'connection')} late`;
  const list = (label: string, names: string[]) => (names.length === 0 ? [] : [`${label}: ${names.join(', ')}`]);
  return {
    summary: `${runs}; ${cases}; ${late}`,
    lines: [
      runs,
      ...list('Failed', failed_connections),
      cases,
      ...facts.open_case_titles,
      ...(late_connections.length === 0 ? ['No data late'] : list('Late', late_connections)),
    ],
  };
}

const plural = (count: number, noun: string) => `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;

/** Reports whether the account matched a file. `items` are differences such as `update connection "Shop"`. */
export async function emitDrift(
  db: Db,
  report: { account_id: string; actor: Actor; file: string; owner: string | null; items: string[] },
): Promise<void> {
  const { account_id, actor, file, owner, items } = report;
  const count = items.length;
  await emit(db, {
    account_id,
    actor,
    event: count === 0 ? 'configuration_matched' : 'configuration_drifted',
    resource: { type: 'account', id: account_id, name: file },
    summary:
      count === 0 ? `The account matches ${file}` : `The account differs from ${file}: ${plural(count, 'change')}`,
    payload: { file, owner, changes: count, changed_items: items },
  });
}
