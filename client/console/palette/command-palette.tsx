import { Modal } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { trpc } from '../api.ts';
import { Icon } from '../components/icon.tsx';
import { SearchField } from '../components/search-field.tsx';
import { usePermission } from '../current-user.ts';
import { useAction } from '../use-action.ts';
import { type Command, commandsOf, type Entry, matching } from './commands.ts';

const NONE: never[] = [];
const CACHED = { staleTime: 30_000 };

/** Everything that the palette finds, from what pages have loaded already where possible. */
function useCommands(): Entry[][] {
  const mayRun = usePermission('connections.run');
  const { data: connections = NONE } = useQuery(trpc.connections.summaries.queryOptions({}, CACHED));
  const { data: account_connectors = NONE } = useQuery(trpc.account_connectors.list.queryOptions({}, CACHED));
  const { data: runs = NONE } = useQuery(trpc.overview.recentRuns.queryOptions({ limit: 50 }, CACHED));
  const { data: cases = NONE } = useQuery(
    trpc.automation.listCases.queryOptions({ status: 'open', limit: 50 }, CACHED),
  );
  const { data: views = NONE } = useQuery(trpc.saved_views.list.queryOptions({}, CACHED));
  return useMemo(
    () => commandsOf({ connections, account_connectors, runs, cases, views, mayRun }),
    [connections, account_connectors, runs, cases, views, mayRun],
  );
}

/** One search over pages, views, connections, sources, destinations, cases, runs and actions. */
export default function CommandPalette({ close }: { close: () => void }) {
  const commands = useCommands();
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const [, navigate] = useLocation();
  const run = useAction(trpc.runs.run, { done: 'Run started', failed: 'Run not started' });
  const shown = useMemo(() => matching(commands, text), [commands, text]);
  const current = Math.min(at, shown.length - 1);
  const start = (command: Command | undefined) => {
    if (!command) return;
    close();
    if (command.href) navigate(command.href);
    else if (command.run) run.mutate({ connection_id: command.run });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setAt((current + step + shown.length) % Math.max(1, shown.length));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      start(shown[current]);
    }
  };
  return (
    <Modal
      opened
      onClose={close}
      withCloseButton={false}
      attributes={{ content: { 'aria-label': 'Search and actions' } }}
      padding={0}
      size="40rem"
    >
      {/* oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- the keys of the search field in it */}
      <div className="palette" onKeyDown={onKeyDown}>
        <SearchField
          label="Search for anything"
          placeholder="Connection, source, run, case, page or action"
          value={text}
          onChange={(value) => {
            setText(value);
            setAt(0);
          }}
        />
        <Matches shown={shown} current={current} start={start} />
        <p className="dimmed palette-foot">Arrow keys and Enter to select, Escape to close</p>
      </div>
    </Modal>
  );
}

interface MatchesProps {
  shown: Command[];
  current: number;
  start: (command: Command) => void;
}

function Matches({ shown, current, start }: MatchesProps) {
  const active = useRef<HTMLLIElement>(null);
  // In Chromium, scrollIntoView returns a promise, which React would take for a cleanup function.
  useEffect(() => {
    active.current?.scrollIntoView({ block: 'nearest' });
  }, [current, shown]);
  if (shown.length === 0) return <p className="dimmed palette-none">Nothing matches</p>;
  return (
    <ul className="palette-list" aria-label="Matches">
      {shown.map((command, index) => (
        <li key={command.key} ref={index === current ? active : null}>
          <button
            type="button"
            tabIndex={-1}
            aria-current={index === current || undefined}
            title={`${command.label} · ${command.note}`}
            onClick={() => start(command)}
          >
            <Icon name={command.icon} size={16} />
            <span className="grow">{command.label}</span>
            <span className="dimmed">{command.note}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
