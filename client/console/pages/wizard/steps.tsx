import { Icon } from '../../components/icon.tsx';

export type StepName = 'source' | 'streams' | 'destination' | 'schedule' | 'review';

const LABELS: Record<StepName, string> = {
  source: 'Source',
  streams: 'Streams',
  destination: 'Destination',
  schedule: 'Schedule',
  review: 'Review',
};

interface StepsProps {
  current: StepName;
  /** The last step that can be gone to, from 0. */
  open: number;
  /** What was decided in a step, in short. */
  told: Partial<Record<StepName, string>>;
  go: (step: StepName) => void;
}

/** Where one is, what was decided, and the way back. */
export function Steps({ current, open, told, go }: StepsProps) {
  const names = Object.keys(LABELS) as StepName[];
  return (
    <nav aria-label="Steps">
      <ol className="steps">
        {names.map((name, index) => {
          const isDone = index < open && name !== current;
          return (
            <li key={name} data-state={name === current ? 'current' : isDone ? 'done' : undefined}>
              <button
                type="button"
                disabled={index > open}
                aria-current={name === current ? 'step' : undefined}
                onClick={() => go(name)}
              >
                <span className="step-mark">{isDone ? <Icon name="check" size={14} /> : index + 1}</span>
                <span className="step-words">
                  <b>{LABELS[name]}</b>
                  {index <= open && <small>{told[name]}</small>}
                </span>
              </button>
            </li>
          );
        })}
      </ol>
    </nav>
  );
}
