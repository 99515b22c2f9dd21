import { useElementSize } from '@mantine/hooks';

export interface Bar {
  key: string;
  /** Under the axis, for some of the bars. */
  label: string;
  /** What it is, for who points at it and for screen readers: `20 Jan: 1,200 rows`. */
  title: string;
  /** From the bottom up. */
  parts: { value: number; tone: 'accent' | 'good' | 'bad' | 'warn' | 'busy' | 'calm' }[];
}

interface BarsProps {
  /** Of the whole, for screen readers. */
  label: string;
  bars: Bar[];
  /** How values are written at the axis. */
  format: (value: number) => string;
  height?: number;
}

/** Before it is measured. */
const USUAL_WIDTH = 600;
const RIGHT = 14;
const LEFT = 54;
const FOOT = 20;
const TOP = 8;

/** A bar chart. Its numbers are a table for who does not see it. */
export function Bars({ label, bars, format, height = 170 }: BarsProps) {
  const { ref, width: measured } = useElementSize<HTMLElement>();
  const whole = measured || USUAL_WIDTH;
  const top = niceTop(Math.max(0, ...bars.map(sum)));
  const plot = height - FOOT - TOP;
  const step = (whole - LEFT - RIGHT) / Math.max(1, bars.length);
  const width = Math.min(step * 0.72, 34);
  const y = (value: number) => TOP + plot * (1 - value / top);
  const every = Math.ceil(bars.length / Math.max(2, Math.floor(whole / 80)));
  return (
    <figure className="chart" ref={ref}>
      <svg viewBox={`0 0 ${whole} ${height}`} aria-hidden="true">
        {[0, 0.5, 1].map((part) => (
          <g key={part}>
            <line className="chart-line" x1={LEFT} x2={whole - RIGHT} y1={y(top * part)} y2={y(top * part)} />
            <text className="chart-label" x={LEFT - 8} y={y(top * part) + 4} textAnchor="end">
              {format(top * part)}
            </text>
          </g>
        ))}
        {bars.map((bar, index) => {
          const x = LEFT + index * step + (step - width) / 2;
          return (
            <g key={bar.key} className="chart-bar">
              <title>{bar.title}</title>
              <rect className="chart-hover" x={LEFT + index * step} y={TOP} width={step} height={plot} />
              {stacked(bar).map(({ tone, from, to }) => (
                <rect
                  key={tone}
                  data-tone={tone}
                  x={x}
                  y={y(to)}
                  width={width}
                  height={Math.max(1, y(from) - y(to))}
                  rx={Math.min(2.5, width / 3)}
                />
              ))}
              {(bars.length - 1 - index) % every === 0 && (
                <text className="chart-label" x={x + width / 2} y={height - 4} textAnchor="middle">
                  {bar.label}
                </text>
              )}
            </g>
          );
        })}
      </svg>
      <figcaption className="hidden">
        {label}
        <ul>
          {bars.map((bar) => (
            <li key={bar.key}>{bar.title}</li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}

const sum = (bar: Bar) => bar.parts.reduce((total, { value }) => total + value, 0);

function stacked({ parts }: Bar) {
  let from = 0;
  return parts.flatMap(({ value, tone }) => {
    if (value === 0) return [];
    const part = { tone, from, to: from + value };
    from = part.to;
    return [part];
  });
}

/** A round number, so that the half of it reads well too. */
function niceTop(value: number): number {
  if (value <= 0) return 2;
  const power = 10 ** Math.floor(Math.log10(value));
  return (
    [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((factor) => factor * power).find((candidate) => candidate >= value) ?? value
  );
}
