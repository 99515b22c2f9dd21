import { useEffect } from 'react';
import { createStore } from '../store.ts';
import { formatBehind, formatDateTime, formatRelativeTime } from './format.ts';

const now = createStore(Date.now());
const TICK_MS = 10_000;
let watchers = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** One clock for every mounted RelativeTime. */
function useNow(): number {
  useEffect(() => {
    watchers += 1;
    if (watchers === 1) {
      now.set(Date.now());
      timer = setInterval(() => now.set(Date.now()), TICK_MS);
    }
    return () => {
      watchers -= 1;
      if (watchers === 0) clearInterval(timer);
    };
  }, []);
  return now.use();
}

/** A time relative to now, with the full date in its tooltip. */
export function RelativeTime({ at, never = '–' }: { at: string | null; never?: string }) {
  const current = useNow();
  if (at === null) return <>{never}</>;
  return (
    <time dateTime={at} title={formatDateTime(at)}>
      {formatRelativeTime(at, current)}
    </time>
  );
}

/** How far a table is behind its source; nothing before its first load. */
export function Freshness({ at }: { at: string | null }) {
  const current = useNow();
  if (at === null) return null;
  return (
    <time dateTime={at} title={`Has everything that the source had at ${formatDateTime(at)}`}>
      {formatBehind(at, current)}
    </time>
  );
}
