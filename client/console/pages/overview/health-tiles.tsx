import { Link } from 'wouter';
import type { RouterOutputs } from '../../api.ts';
import { compact, count } from '../../components/format.ts';
import { type Summary, stateOf } from '../connections/connection-list.tsx';

/** Counts that lead to the connections which they count. */
export function HealthTiles({
  connections,
  today,
}: {
  connections: Summary[];
  today?: RouterOutputs['overview']['activity'][number];
}) {
  const of = (...states: string[]) => connections.filter((one) => states.includes(stateOf(one))).length;
  const tiles = [
    { label: 'Healthy', value: of('healthy'), tone: 'good', href: '?state=healthy' },
    { label: 'Running now', value: of('running'), tone: 'busy', href: '?state=running' },
    { label: 'Warning', value: of('warning'), tone: 'warn', href: '?state=warning' },
    { label: 'Failing', value: of('failing', 'auto_disabled', 'locked'), tone: 'bad', href: '?state=failing' },
    { label: 'Paused', value: of('paused'), tone: 'calm', href: '?state=paused' },
  ];
  return (
    <ul className="tiles">
      {tiles.map(({ label, value, tone, href }) => (
        <li key={label}>
          <Link href={`/console/connections${href}`} className="tile" data-tone={value === 0 ? 'none' : tone}>
            <span>{label}</span>
            <b className="number">{count(value)}</b>
          </Link>
        </li>
      ))}
      <li>
        <div className="tile">
          <span>Rows today</span>
          <b className="number">{today ? compact(today.rows_loaded) : '–'}</b>
        </div>
      </li>
    </ul>
  );
}
