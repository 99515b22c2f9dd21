import type { RouterOutputs } from '../../api.ts';
import { formatCompact, formatDuration, pluralize } from '../../components/format.ts';
import type { RunProgress } from './use-run-progress.ts';

export type StreamTrend = RouterOutputs['runs']['trends'][number];
type StreamRun = RunProgress['stream_runs'][number];

/** Rows and duration of a stream beside those of its last successful runs. */
export function Trend({ stream, trend }: { stream: StreamRun; trend: StreamTrend | undefined }) {
  if (!trend || trend.median_rows_loaded === null || stream.status !== 'succeeded') return null;
  const compared = trend.runs.length === 1 ? 'previous run' : `median of ${trend.runs.length} runs`;
  const rows = [...trend.runs.map(({ rows_loaded }) => rows_loaded), stream.rows_loaded];
  const durations = [...trend.runs.map(({ duration_ms }) => duration_ms), stream.duration_ms ?? 0];
  return (
    <>
      <span className="trend">
        <Sparkline values={rows} />
        {pluralize(stream.rows_loaded, 'row', formatCompact)}, {compared} {formatCompact(trend.median_rows_loaded)}
      </span>
      <span className="trend">
        <Sparkline values={durations} />
        {formatDuration(stream.duration_ms)}, {compared} {formatDuration(trend.median_duration_ms)}
      </span>
    </>
  );
}

const WIDTH = 56;
const HEIGHT = 16;
const INSET = 2;

/** Decorative: the text beside it has the numbers. */
function Sparkline({ values }: { values: number[] }) {
  const top = Math.max(1, ...values);
  const points = values.map((value, index) => {
    const x = INSET + (index * (WIDTH - 2 * INSET)) / Math.max(1, values.length - 1);
    return { x, y: HEIGHT - INSET - (value / top) * (HEIGHT - 2 * INSET) };
  });
  const last = points.at(-1)!;
  return (
    <svg className="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} aria-hidden="true">
      <polyline points={points.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ')} />
      <circle cx={last.x} cy={last.y} r={INSET} />
    </svg>
  );
}
