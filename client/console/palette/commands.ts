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

/** A command with the texts that are searched. */
export interface Entry {
  command: Command;
  /** In lower case. */
  label: string;
  /** Label and note, in lower case. */
  text: string;
}

interface Known {
  connections: RouterOutputs['connections']['summaries'];
  account_connectors: RouterOutputs['account_connectors']['list'];
  runs: RouterOutputs['overview']['recentRuns'];
  cases: RouterOutputs['automation']['listCases'];
  views: RouterOutputs['saved_views']['list'];
  mayRun: boolean;
}

const entryOf = (command: Command): Entry => {
  const label = command.label.toLowerCase();
  return { command, label, text: `${label} ${command.note.toLowerCase()}` };
};

/** Keeps the entries of a list for as long as queries return the same one, so that they outlast the palette. */
function indexed<Item>(toCommands: (items: Item[]) => Command[]): (items: Item[]) => Entry[] {
  const known = new WeakMap<Item[], Entry[]>();
  return (items) => {
    const found = known.get(items) ?? toCommands(items).map(entryOf);
    known.set(items, found);
    return found;
  };
}

const NEW = (
  [
    { key: 'new-connection', label: 'New connection', note: 'Action', icon: 'add', href: '/console/connections/new' },
    { key: 'new-source', label: 'New source', note: 'Action', icon: 'add', href: '/console/sources/new' },
    {
      key: 'new-destination',
      label: 'New destination',
      note: 'Action',
      icon: 'add',
      href: '/console/destinations/new',
    },
    { key: 'new-trigger', label: 'New trigger', note: 'Action', icon: 'add', href: '/console/triggers/new' },
  ] satisfies Command[]
).map(entryOf);

const PAGES = NAVIGATION.flatMap(({ items }) =>
  items.map(({ label, href, icon }) => entryOf({ key: href, label, note: 'Page', icon, href })),
);

const labelOf = (page: string) =>
  PAGES.find(({ command }) => command.href === `/console/${page}`)?.command.label ?? page;

const ofViews = indexed((views: Known['views']) =>
  views.map(
    (view): Command => ({
      key: view.id,
      label: view.name,
      note: `View · ${labelOf(view.page)}`,
      icon: 'filter',
      href: hrefOf(view),
    }),
  ),
);

const ofConnections = indexed((connections: Known['connections']) =>
  connections.map(
    ({ id, name, source, destination, tags }): Command => ({
      key: id,
      label: name,
      note: ['Connection', `${source.name} → ${destination.name}`, ...tags].join(' · '),
      icon: 'connection',
      href: `/console/connections/${id}`,
    }),
  ),
);

const ofAccountConnectors = indexed((account_connectors: Known['account_connectors']) =>
  account_connectors.map(
    ({ id, name, connector_type, connector_display_name }): Command => ({
      key: id,
      label: name,
      note: `${connector_type === 'source' ? 'Source' : 'Destination'} · ${connector_display_name}`,
      icon: connector_type,
      href: `/console/${connector_type}s/${id}`,
    }),
  ),
);

const ofCases = indexed((cases: Known['cases']) =>
  cases.map(
    ({ id, number, trigger_name, title }): Command => ({
      key: id,
      label: `#${number} ${title}`,
      note: `Case · ${trigger_name}`,
      icon: 'case',
      href: `/console/cases/${id}`,
    }),
  ),
);

const ofRuns = indexed((runs: Known['runs']) =>
  runs.map(
    ({ id, connection_id, connection_name, number, status }): Command => ({
      key: id,
      label: `${connection_name} #${number}`,
      note: `Run · ${status.replaceAll('_', ' ')}`,
      icon: 'clock',
      href: `/console/connections/${connection_id}/runs/${id}`,
    }),
  ),
);

const runsOf = indexed((connections: Known['connections']) =>
  connections
    .filter(({ status, active_run_id }) => status !== 'locked' && active_run_id === null)
    .map(
      ({ id, name }): Command => ({ key: `run ${id}`, label: `Run ${name}`, note: 'Action', icon: 'play', run: id }),
    ),
);

/** Everything that can be opened or done, the most likely first. */
export const commandsOf = ({ connections, account_connectors, runs, cases, views, mayRun }: Known): Entry[][] => [
  PAGES,
  ofViews(views),
  ofConnections(connections),
  NEW,
  ofAccountConnectors(account_connectors),
  ofCases(cases),
  ofRuns(runs),
  mayRun ? runsOf(connections) : [],
];

const SHOWN = 30;

/** Commands in which every word occurs; those whose label starts with the text come first. */
export function matching(commands: readonly Entry[][], typed: string): Command[] {
  const wanted = typed.trim().toLowerCase();
  const words = wanted.split(/\s+/);
  const starting: Command[] = [];
  const others: Command[] = [];
  for (const entries of commands) {
    for (const { command, label, text } of entries) {
      if (!words.every((word) => text.includes(word))) continue;
      if (label.startsWith(wanted)) starting.push(command);
      else if (others.length < SHOWN) others.push(command);
      if (starting.length >= SHOWN) return starting;
    }
  }
  return [...starting, ...others].slice(0, SHOWN);
}
