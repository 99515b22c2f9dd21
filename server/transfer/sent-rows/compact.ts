import type { WriteCounts } from '../../connectors/contract/connector.ts';
import { replaceSegments, type SentSegment } from '../../runs/delivery/sent-rows.ts';
import type { Attempt } from '../attempt.ts';
import { KEPT, type KeyTable, PRESENT, UNSURE } from './key-table.ts';
import { type Entry, packEntries, unpackEntries } from './segments.ts';

const ENTRIES_PER_SEGMENT = 10_000;

/** Rewrites the segments of a stream with one entry per key. @returns false if the claim is lost */
export function compact(
  { deps, claim }: Attempt,
  known: { place: string; counts: WriteCounts; table: KeyTable },
): Promise<boolean> {
  const { place, counts, table } = known;
  return replaceSegments(deps.db, claim, { place, counts, segments: (old) => joined(old, table) });
}

async function* joined(old: AsyncIterable<SentSegment>, table: KeyTable): AsyncGenerator<Omit<SentSegment, 'id'>> {
  let entries: Entry[] = [];
  const packed = () => ({ settled: true, entries: entries.length, data: packEntries(entries) });
  for await (const { data } of old) {
    for (const { key } of unpackEntries(data)) {
      const slot = table.slot(key);
      const flags = table.flags(slot);
      if ((flags & (PRESENT | UNSURE)) === 0 || (flags & KEPT) !== 0) continue;
      table.set(slot, KEPT);
      const state = { existed: (flags & PRESENT) !== 0, unsure: (flags & UNSURE) !== 0, gone: false };
      entries.push({ key, content: table.content(slot), ...state });
      if (entries.length < ENTRIES_PER_SEGMENT) continue;
      yield packed();
      entries = [];
    }
  }
  if (entries.length > 0) yield packed();
}
