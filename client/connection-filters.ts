import type { ApiClient } from './api.ts';

type Summary = Awaited<ReturnType<ApiClient['connections']['summaries']['query']>>[number];

/** What a list of connections is filtered and sorted by. */
type Filtered = Pick<
  Summary,
  'name' | 'source' | 'destination' | 'tags' | 'folder' | 'status' | 'health' | 'last_run' | 'next_run_at'
>;

/** Filters and sort order as in the address of the console's list, where all are optional. */
export interface ConnectionFilters {
  /** Words of which each occurs in names, tags, status or health. */
  q: string;
  state: string;
  tag: string;
  /** A folder; those below it pass, too. */
  folder: string;
  sort: string;
}

/** Reads the filters of an address; other parameters are ignored. */
export const connectionFilters = (search: URLSearchParams): ConnectionFilters => ({
  q: search.get('q') ?? '',
  state: search.get('state') ?? '',
  tag: search.get('tag') ?? '',
  folder: search.get('folder') ?? '',
  sort: search.get('sort') ?? '',
});

/** The connections that pass all filters, in the wanted order. */
export function filterConnections<One extends Filtered>(all: One[], filters: ConnectionFilters): One[] {
  const { state, tag, folder } = filters;
  const words = filters.q.toLowerCase().split(/\s+/).filter(Boolean);
  const passing = all.filter(
    (one) =>
      (state === '' || isInState(one, state)) &&
      (tag === '' || one.tags.includes(tag)) &&
      (folder === '' || isInFolder(one, folder)) &&
      hasWords(one, words),
  );
  return sortConnections(passing, filters.sort);
}

/** Whether a connection is in a folder, or in one below it. */
export const isInFolder = (connection: Pick<Summary, 'folder'>, folder: string): boolean =>
  `${connection.folder ?? ''}/`.startsWith(`${folder}/`);

/** Status and health as one state: health counts only while the connection is active. */
export const stateOf = ({ status, health }: Pick<Summary, 'status' | 'health'>): string =>
  status === 'active' ? health : status;

/** Disabled and locked connections count as failing. */
export const isInState = (connection: Pick<Summary, 'status' | 'health'>, state: string): boolean => {
  const own = stateOf(connection);
  return own === state || (state === 'failing' && (own === 'auto_disabled' || own === 'locked'));
};

function hasWords({ name, source, destination, tags, folder, status, health }: Filtered, words: string[]): boolean {
  if (words.length === 0) return true;
  const texts = [
    name,
    source.name,
    source.display_name,
    destination.name,
    destination.display_name,
    ...tags,
    folder ?? '',
    status.replaceAll('_', ' '),
    health,
  ].map((text) => text.toLowerCase());
  return words.every((word) => texts.some((text) => text.includes(word)));
}

const ORDER = ['failing', 'warning', 'running', 'pending', 'healthy'];
const urgency = ({ health, status }: Filtered) => (status === 'paused' ? ORDER.length : ORDER.indexOf(health));

const BY: Record<string, (a: Filtered, b: Filtered) => number> = {
  name: (a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }),
  last_run: (a, b) => (b.last_run?.started_at ?? '').localeCompare(a.last_run?.started_at ?? ''),
  next_run: (a, b) => (a.next_run_at ?? '~').localeCompare(b.next_run_at ?? '~'),
  state: (a, b) => urgency(a) - urgency(b),
};

/** `by`: a value of `sort`; any other leaves the order as it is, which is newest first. */
export const sortConnections = <One extends Filtered>(connections: One[], by: string): One[] =>
  BY[by] ? connections.toSorted(BY[by]) : connections;
