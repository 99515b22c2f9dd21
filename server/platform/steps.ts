/**
 * The loops of an idle process take their turns together: to wake up costs it more than the turn of a loop. Processes
 * start at different moments, so they are not in step with one another.
 */
const STEP_MS = 1000;

/** Loops that wait for a step, by their place. */
interface Step {
  timer: Timer;
  starts: Map<number, () => void>;
}
const steps = new Map<number, Step>();

interface Loop {
  place: number;
  start(): void;
}

let created = 0;
/** The place of a new loop: those created first take their turns first. */
export const nextPlace = (): number => (created += 1);

/** Starts the next turn of a loop after a pause. @returns a function that prevents it */
export function wakeLater(loop: Loop, { every_ms, jitter }: { every_ms: number; jitter: number }): () => void {
  const now = performance.now();
  const at = nextTurn(every_ms, { jitter, now });
  if (every_ms >= STEP_MS) return joinStep(at, loop);
  const timer = setTimeout(loop.start, at - now);
  return () => clearTimeout(timer);
}

/** A timer that takes its turn with the loops. @returns a function that prevents it */
export const stepLater = (start: () => void, ms: number): (() => void) =>
  wakeLater({ place: nextPlace(), start }, { every_ms: ms, jitter: 0 });

/** @returns a function that leaves the step */
function joinStep(at: number, loop: Loop): () => void {
  const step = steps.get(at) ?? openStep(at);
  step.starts.set(loop.place, loop.start);
  return () => {
    step.starts.delete(loop.place);
    if (step.starts.size > 0 || steps.get(at) !== step) return;
    // It would keep the process from its end.
    clearTimeout(step.timer);
    steps.delete(at);
  };
}

function openStep(at: number): Step {
  const starts: Step['starts'] = new Map();
  const begin = () => {
    steps.delete(at);
    for (const place of [...starts.keys()].toSorted((one, other) => one - other)) starts.get(place)?.();
  };
  const step = { timer: setTimeout(begin, at - performance.now()), starts };
  steps.set(at, step);
  return step;
}

/** When the next turn begins. A pause of a second or more ends at a full second of the process. */
export function nextTurn(every_ms: number, { jitter, now }: { jitter: number; now: number }): number {
  const at = now + every_ms * (1 + jitter * (2 * Math.random() - 1));
  return every_ms < STEP_MS ? at : Math.round(at / STEP_MS) * STEP_MS;
}
