import { Icon } from '../../components/icon.tsx';

export type StepName = 'source' | 'streams' | 'destination' | 'schedule' | 'review';

export const STEP_LABELS: Record<StepName, string> = {
  source: 'Source',
  streams: 'Streams',
  destination: 'Destination',
  schedule: 'Schedule',
  review: 'Review',
};

interface StepsProps {
  current: StepName;
  /** Index of the last step that can be opened. */
  lastOpen: number;
  /** A short summary of each step. */
  summaries: Partial<Record<StepName, string>>;
  go: (step: StepName) => void;
}

/** The steps of the wizard, with the current one and links to the earlier ones. */
export function Steps({ current, lastOpen, summaries, go }: StepsProps) {
  const names = Object.keys(STEP_LABELS) as StepName[];
  return (
    <nav aria-label="Steps">
      <ol className="steps">
        {names.map((name, index) => {
          const isDone = index < lastOpen && name !== current;
          return (
            <li key={name} data-state={name === current ? 'current' : isDone ? 'done' : undefined}>
              <button
                type="button"
                disabled={index > lastOpen}
                aria-current={name === current ? 'step' : undefined}
                onClick={() => go(name)}
              >
                <span className="step-mark">{isDone ? <Icon name="check" size={14} /> : index + 1}</span>
                <span className="step-words">
                  <b>{STEP_LABELS[name]}</b>
                  {index <= lastOpen && <small title={summaries[name]}>{summaries[name]}</small>}
                </span>
              </button>
            </li>
          );
        })}
      </ol>
    </nav>
  );
}
