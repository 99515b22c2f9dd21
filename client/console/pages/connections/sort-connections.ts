import { optionsOf } from '../../components/options.ts';
import type { Summary } from './connection-list.tsx';

export const SORTS = optionsOf({
  '': 'Newest first',
  name: 'By name',
  last_run: 'Last run first',
  next_run: 'Next run first',
  state: 'Problems first',
});

const ORDER = ['failing', 'warning', 'running', 'pending', 'healthy'];
const urgency = ({ health, status }: Summary) => (status === 'paused' ? ORDER.length : ORDER.indexOf(health));

const BY: Record<string, (a: Summary, b: Summary) => number> = {
  name: (a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }),
  last_run: (a, b) => (b.last_run?.started_at ?? '').localeCompare(a.last_run?.started_at ?? ''),
  next_run: (a, b) => (a.next_run_at ?? '~').localeCompare(b.next_run_at ?? '~'),
  state: (a, b) => urgency(a) - urgency(b),
};

export const sorted = (connections: Summary[], by: string): Summary[] =>
  BY[by] ? connections.toSorted(BY[by]) : connections;
