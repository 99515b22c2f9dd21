import { formatDuration } from '../../components/format.ts';
import { toneOf, wordsOf } from '../../components/status.tsx';
import type { RunProgress } from './use-run-progress.ts';

type StreamRun = RunProgress['stream_runs'][number];

/** When each stream ran within the run, so that the one that held up the others is seen. */
export function Timeline({ streams }: { streams: StreamRun[] }) {
  const started = streams.filter((stream) => stream.started_at !== null);
  if (started.length < 2) return null;
  const begins = started.map((stream) => Date.parse(stream.started_at!));
  const ends = started.map(endOf);
  const first = Math.min(...begins);
  const whole = Math.max(1, Math.max(...ends) - first);
  const percent = (ms: number) => `${Math.max(0.5, (100 * ms) / whole)}%`;
  return (
    <figure className="timeline-chart" aria-label="Durations of the streams">
      <ol>
        {started.map((stream, index) => {
          const [begin, end] = [begins[index]!, ends[index]!];
          const text = `${stream.stream_name}: starts after ${formatDuration(begin - first)}, takes ${formatDuration(end - begin)}, ${wordsOf(stream.status)}`;
          return (
            <li key={stream.id} title={text}>
              <span className="timeline-name" title={stream.stream_name}>
                {stream.stream_name}
              </span>
              <span className="timeline-track">
                <i
                  data-tone={toneOf(stream.status)}
                  style={{ marginInlineStart: `${(99 * (begin - first)) / whole}%`, width: percent(end - begin) }}
                />
              </span>
              <span className="dimmed number">{formatDuration(end - begin)}</span>
            </li>
          );
        })}
      </ol>
    </figure>
  );
}

/** Of a running stream: the moment of its figures. */
const endOf = ({ started_at, duration_ms }: StreamRun) => Date.parse(started_at!) + (duration_ms ?? 0);
