import { toneOf, wordsOf } from './status.tsx';
import { formatDateTime, formatDuration } from './format.ts';

interface StripRun {
  id: string;
  number: number;
  status: string;
  created_at: string;
  duration_ms: number | null;
}

const SLOTS = 16;

/** The latest runs of a connection as one mark each, the newest on the right. */
export function RunStrip({ runs }: { runs: StripRun[] }) {
  return (
    <span className="strip" role="img" aria-label={describeRuns(runs)}>
      {Array.from({ length: SLOTS - runs.length }, (_, index) => (
        <i key={index} />
      ))}
      {runs.map((run) => (
        <i
          key={run.id}
          data-tone={toneOf(run.status)}
          title={`#${run.number} ${wordsOf(run.status)}, ${formatDateTime(run.created_at)}, ${formatDuration(run.duration_ms)}`}
        />
      ))}
    </span>
  );
}

function describeRuns(runs: StripRun[]): string {
  if (runs.length === 0) return 'No runs yet';
  const counts = new Map<string, number>();
  for (const { status } of runs) counts.set(status, (counts.get(status) ?? 0) + 1);
  const parts = [...counts].map(([status, count]) => `${count} ${wordsOf(status)}`);
  return `Last ${runs.length} runs: ${parts.join(', ')}`;
}
