import { Link } from 'wouter';
import { isInState } from '../../../connection-filters.ts';
import type { RouterOutputs } from '../../api.ts';
import { formatCompact, formatCount } from '../../components/format.ts';
import type { Summary } from '../../answers.ts';

/** Connection counts, each with a link to the connections that it counts. */
export function HealthTiles({
  connections,
  today,
}: {
  connections: Summary[];
  today?: RouterOutputs['overview']['activity'][number];
}) {
  const inState = (state: string) => connections.filter((one) => isInState(one, state)).length;
  const tiles = [
    { label: 'Healthy', value: inState('healthy'), tone: 'good', href: '?state=healthy' },
    { label: 'Running', value: inState('running'), tone: 'busy', href: '?state=running' },
    { label: 'Warning', value: inState('warning'), tone: 'warn', href: '?state=warning' },
    { label: 'Failing', value: inState('failing'), tone: 'bad', href: '?state=failing' },
    { label: 'Paused', value: inState('paused'), tone: 'calm', href: '?state=paused' },
  ];
  return (
    <ul className="tiles">
      {tiles.map(({ label, value, tone, href }) => (
        <li key={label}>
          <Link href={`/console/connections${href}`} className="tile" data-tone={value === 0 ? 'none' : tone}>
            <span>{label}</span>
            <b className="number">{formatCount(value)}</b>
          </Link>
        </li>
      ))}
      <li>
        <div className="tile">
          <span>Rows today</span>
          <b className="number">{today ? formatCompact(today.rows_loaded) : '–'}</b>
        </div>
      </li>
    </ul>
  );
}
