/**
 * The loops of an idle process take their turns together: to wake up costs it more than the turn of a loop. Processes
 * start at different moments, so they are not in step with one another.
 */
const STEP_MS = 1000;
/**
 * Up to this pause, loops with the same pause begin together: what they ask is one statement then, and the same one each
 * time. Longer pauses vary.
 */
const TOGETHER_MS = 10_000;

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
  return wakeAt(nextTurn(every_ms, { jitter, now }), { loop, pause_ms: every_ms, now });
}

/** A timer that takes its turn with the loops. @returns a function that prevents it */
export function stepLater(start: () => void, ms: number): () => void {
  const now = performance.now();
  const at = ms < STEP_MS ? now + ms : fullTime(now + ms, STEP_MS);
  return wakeAt(at, { loop: { place: nextPlace(), start }, pause_ms: ms, now });
}

function wakeAt(at: number, { loop, pause_ms, now }: { loop: Loop; pause_ms: number; now: number }): () => void {
  if (pause_ms >= STEP_MS) return joinStep(at, loop);
  const timer = setTimeout(loop.start, at - now);
  return () => clearTimeout(timer);
}

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

/**
 * When the next turn begins. A pause of a second or more ends at a full second of the process, a frequent one at a
 * multiple of itself.
 */
export function nextTurn(every_ms: number, { jitter, now }: { jitter: number; now: number }): number {
  const at = now + every_ms * (1 + jitter * (2 * Math.random() - 1));
  if (every_ms < STEP_MS) return at;
  return fullTime(at, every_ms > TOGETHER_MS ? STEP_MS : every_ms);
}

const fullTime = (at: number, unit_ms: number): number => Math.round(at / unit_ms) * unit_ms;
