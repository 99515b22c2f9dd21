import type { RouterOutputs } from '../api.ts';
import type { IconName } from '../components/icon.tsx';
import { NAVIGATION } from '../navigation.ts';
import { hrefOf } from '../saved-views/address.ts';

/** An entry of the command palette. */
export interface Command {
  key: string;
  label: string;
  /** What kind of thing it is, and further words to find it by. */
  note: string;
  icon: IconName;
  href?: string;
  /** Runs a connection. */
  run?: string;
}

interface Known {
  connections: RouterOutputs['connections']['summaries'];
  account_connectors: RouterOutputs['account_connectors']['list'];
  runs: RouterOutputs['overview']['recentRuns'];
  cases: RouterOutputs['automation']['listCases'];
  views: RouterOutputs['saved_views']['list'];
  mayRun: boolean;
}

const NEW: Command[] = [
  { key: 'new-connection', label: 'New connection', note: 'Action', icon: 'add', href: '/console/connections/new' },
  { key: 'new-source', label: 'New source', note: 'Action', icon: 'add', href: '/console/sources/new' },
  { key: 'new-destination', label: 'New destination', note: 'Action', icon: 'add', href: '/console/destinations/new' },
  { key: 'new-trigger', label: 'New trigger', note: 'Action', icon: 'add', href: '/console/triggers/new' },
];

const PAGES: Command[] = NAVIGATION.flatMap(({ items }) =>
  items.map(({ label, href, icon }) => ({ key: href, label, note: 'Page', icon, href })),
);

const labelOf = (page: string) => PAGES.find(({ href }) => href === `/console/${page}`)?.label ?? page;

/** Everything that can be opened or done, the most likely first. */
export const commandsOf = ({ connections, account_connectors, runs, cases, views, mayRun }: Known): Command[] => [
  ...PAGES,
  ...views.map(
    (view): Command => ({
      key: view.id,
      label: view.name,
      note: `View · ${labelOf(view.page)}`,
      icon: 'filter',
      href: hrefOf(view),
    }),
  ),
  ...connections.map(
    ({ id, name, source, destination, tags }): Command => ({
      key: id,
      label: name,
      note: ['Connection', `${source.name} → ${destination.name}`, ...tags].join(' · '),
      icon: 'connection',
      href: `/console/connections/${id}`,
    }),
  ),
  ...NEW,
  ...account_connectors.map(
    ({ id, name, connector_type, connector_display_name }): Command => ({
      key: id,
      label: name,
      note: `${connector_type === 'source' ? 'Source' : 'Destination'} · ${connector_display_name}`,
      icon: connector_type,
      href: `/console/${connector_type}s/${id}`,
    }),
  ),
  ...cases.map(
    ({ id, number, trigger_name, title }): Command => ({
      key: id,
      label: `#${number} ${title}`,
      note: `Case · ${trigger_name}`,
      icon: 'case',
      href: `/console/cases/${id}`,
    }),
  ),
  ...runs.map(
    ({ id, connection_id, connection_name, number, status }): Command => ({
      key: id,
      label: `${connection_name} #${number}`,
      note: `Run · ${status.replaceAll('_', ' ')}`,
      icon: 'clock',
      href: `/console/connections/${connection_id}/runs/${id}`,
    }),
  ),
  ...(mayRun
    ? connections
        .filter(({ status, active_run_id }) => status !== 'locked' && active_run_id === null)
        .map(
          ({ id, name }): Command => ({
            key: `run ${id}`,
            label: `Run ${name}`,
            note: 'Action',
            icon: 'play',
            run: id,
          }),
        )
    : []),
];

const SHOWN = 30;

/** Commands in which every word occurs; those whose label starts with the text come first. */
export function matching(commands: readonly Command[], text: string): Command[] {
  const wanted = text.trim().toLowerCase();
  const words = wanted.split(/\s+/);
  const starting: Command[] = [];
  const others: Command[] = [];
  for (const command of commands) {
    const label = command.label.toLowerCase();
    const whole = `${label} ${command.note.toLowerCase()}`;
    if (!words.every((word) => whole.includes(word))) continue;
    (label.startsWith(wanted) ? starting : others).push(command);
    if (starting.length >= SHOWN) break;
  }
  return [...starting, ...others].slice(0, SHOWN);
}
