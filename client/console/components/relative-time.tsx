import { useEffect } from 'react';
import { createStore } from '../store.ts';
import { ago, momentOf } from './format.ts';

const now = createStore(Date.now());
const TICK_MS = 10_000;
let watchers = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** One clock for all of them. */
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

/** A moment as its distance from now, with the moment itself for who points at it. */
export function RelativeTime({ at, never = '–' }: { at: string | null; never?: string }) {
  const current = useNow();
  if (at === null) return <>{never}</>;
  return (
    <time dateTime={at} title={momentOf(at)}>
      {ago(at, current)}
    </time>
  );
}
