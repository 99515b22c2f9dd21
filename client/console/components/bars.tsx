import { useElementSize } from '@mantine/hooks';

export interface Bar {
  key: string;
  /** Below the axis; only some bars show theirs. */
  label: string;
  /** Tooltip and text for screen readers: `20 Jan: 1,200 rows`. */
  title: string;
  /** Stacked from the bottom up. */
  parts: { value: number; tone: 'accent' | 'good' | 'bad' | 'warn' | 'busy' | 'calm' }[];
}

interface BarsProps {
  /** Names the chart for screen readers. */
  label: string;
  bars: Bar[];
  /** Formats the values on the axis. */
  format: (value: number) => string;
  height?: number;
}

/** Used until the element is measured. */
const DEFAULT_WIDTH = 600;
const RIGHT = 14;
const MIN_LEFT = 54;
const LABEL_GAP = 8;
/** Of one character in an axis label. */
const CHARACTER_WIDTH = 6.2;
const FOOT = 20;
const TOP = 8;

/** A bar chart, with its values as a list for screen readers. */
export function Bars({ label, bars, format, height = 170 }: BarsProps) {
  const { ref, width: measured } = useElementSize<HTMLElement>();
  const whole = measured || DEFAULT_WIDTH;
  const top = niceTop(Math.max(0, ...bars.map(sum)));
  const plot = height - FOOT - TOP;
  // Items have no halves.
  const isHalved = Number.isInteger(top / 2);
  const ticks = (isHalved ? [0, 0.5, 1] : [0, 1]).map((part) => ({ value: top * part, label: format(top * part) }));
  const left = Math.max(
    MIN_LEFT,
    LABEL_GAP + CHARACTER_WIDTH * Math.max(...ticks.map(({ label: text }) => text.length)),
  );
  const step = (whole - left - RIGHT) / Math.max(1, bars.length);
  const width = Math.min(step * 0.72, 34);
  const y = (value: number) => TOP + plot * (1 - value / top);
  const every = Math.ceil(bars.length / Math.max(2, Math.floor(whole / 80)));
  return (
    <figure className="chart" ref={ref}>
      <svg viewBox={`0 0 ${whole} ${height}`} aria-hidden="true">
        {ticks.map(({ value, label: text }) => (
          <g key={value}>
            <line className="chart-line" x1={left} x2={whole - RIGHT} y1={y(value)} y2={y(value)} />
            <text className="chart-label" x={left - LABEL_GAP} y={y(value) + 4} textAnchor="end">
              {text}
            </text>
          </g>
        ))}
        {bars.map((bar, index) => {
          const x = left + index * step + (step - width) / 2;
          return (
            <g key={bar.key} className="chart-bar">
              <title>{bar.title}</title>
              <rect className="chart-hover" x={left + index * step} y={TOP} width={step} height={plot} />
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

/** A round maximum, whose half is round as well from 20. */
function niceTop(value: number): number {
  if (value <= 0) return 2;
  const power = 10 ** Math.floor(Math.log10(value));
  return (
    [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((factor) => factor * power).find((candidate) => candidate >= value) ?? value
  );
}
