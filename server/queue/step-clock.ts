import { systemClock } from 'pg-boss';
import { stepLater } from '../platform/steps.ts';

type Cancel = () => void;

function again(work: () => void, ms: number): Cancel {
  let cancel = stepLater(turn, ms);
  function turn() {
    cancel = stepLater(turn, ms);
    work();
  }
  return () => cancel();
}

/** The clock of pg-boss, whose timers of a second or more take their turns with the loops of the process. */
export const STEP_CLOCK = {
  now: systemClock.now,
  setTimeout: stepLater,
  clearTimeout: (cancel?: Cancel) => cancel?.(),
  setInterval: again,
  clearInterval: (cancel?: Cancel) => cancel?.(),
};
