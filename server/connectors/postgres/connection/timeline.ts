import { lsnValue } from './lsn.ts';
import type { PgSession } from './session.ts';

/** Where the timeline of an earlier read ends in the history of the current one: after it the servers differ. */
export async function timelineEnd(replication: PgSession, timeline: number, current: number): Promise<bigint> {
  const { rows } = await replication.query(`TIMELINE_HISTORY ${current}`);
  const content = rows[0]?.[1] ?? '';
  const text = content.startsWith('\\x') ? Buffer.from(content.slice(2), 'hex').toString() : content;
  const lines = text.split('\n').map((line) => line.split('\t'));
  const end = lines.find(([left]) => left?.trim() === String(timeline))?.[1];
  return end === undefined ? 0n : lsnValue(end.trim());
}
