import { Checkbox } from '@mantine/core';
import { useSessionStorage } from '@mantine/hooks';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { memo, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import { stateOf } from '../../../connection-filters.ts';
import { Freshness, RelativeTime } from '../../components/relative-time.tsx';
import { Icon } from '../../components/icon.tsx';
import { RunStrip } from '../../components/run-strip.tsx';
import { Status } from '../../components/status.tsx';
import { ConnectionMenu } from './connection-menu.tsx';
import { FolderHeading } from './folder-heading.tsx';
import { type ListRow, rowsOf } from './folder-rows.ts';
import { useVisible } from './use-summaries.ts';
import type { Summary } from '../../answers.ts';

const ROW_PX = 64;
const HEADING_PX = 41;

interface ConnectionListProps {
  connections: Summary[];
  selection?: Selection;
  /** Whether connections are below the headings of their folders. */
  isGrouped?: boolean;
}

/** Connections, virtualised: only the visible rows are in the DOM. */
export function ConnectionList({ connections, selection, isGrouped = false }: ConnectionListProps) {
  const { collapsed, toggle } = useCollapsed();
  const all = useMemo(
    () => (isGrouped ? rowsOf(connections, collapsed) : connections.map((one) => ({ key: one.id, connection: one }))),
    [connections, collapsed, isGrouped],
  );
  const list = useRef<HTMLUListElement>(null);
  const [offset, setOffset] = useState(0);
  useLayoutEffect(() => {
    setOffset((list.current?.getBoundingClientRect().top ?? 0) + window.scrollY);
  }, [connections.length]);
  const rows = useWindowVirtualizer({
    count: all.length,
    estimateSize: (index) => ('folder' in all[index]! ? HEADING_PX : ROW_PX),
    overscan: 8,
    scrollMargin: offset,
    getItemKey: (index) => all[index]!.key,
  });
  const shown = rows.getVirtualItems();
  const ids = shown.flatMap(({ index }) => idOf(all[index]!)).toSorted();
  const newest = useVisible(ids, connections.length);
  return (
    <div className="connections" data-selectable={selection ? true : undefined}>
      <div className="connections-head" aria-hidden="true">
        {selection && <span />}
        <span>Connection</span>
        <span>Status</span>
        <span>Recent runs</span>
        <span>Last run</span>
        <span>Next run</span>
        <span />
      </div>
      <ul ref={list} className="connections-list" style={{ height: rows.getTotalSize() }}>
        {shown.map(({ index, start, key }) => (
          <li
            key={key}
            ref={rows.measureElement}
            data-index={index}
            style={{ transform: `translateY(${start - offset}px)` }}
            aria-setsize={all.length}
            aria-posinset={index + 1}
          >
            <AnyRow row={newestOf(all[index]!, newest)} {...{ selection, collapsed, toggle }} />
          </li>
        ))}
      </ul>
    </div>
  );
}

const idOf = (row: ListRow): string[] => ('folder' in row ? [] : [row.connection.id]);

const newestOf = (row: ListRow, newest: ReadonlyMap<string, Summary>): ListRow =>
  'folder' in row ? row : { ...row, connection: newest.get(row.connection.id) ?? row.connection };

interface AnyRowProps {
  row: ListRow;
  selection: Selection | undefined;
  collapsed: readonly string[];
  toggle: (folder: string) => void;
}

const AnyRow = ({ row, selection, collapsed, toggle }: AnyRowProps) =>
  'folder' in row ? (
    <FolderHeading row={row} isCollapsed={collapsed.includes(row.folder)} toggle={toggle} />
  ) : (
    <Row connection={row.connection} isSelected={selection?.ids.has(row.key)} toggle={selection?.toggle} />
  );

/** The folders whose connections are hidden, for as long as the tab is open. */
function useCollapsed() {
  const [collapsed, setCollapsed] = useSessionStorage<string[]>({
    key: 'collapsed-folders',
    defaultValue: [],
    getInitialValueInEffect: false,
  });
  const toggle = (folder: string) =>
    setCollapsed((before) => (before.includes(folder) ? before.filter((one) => one !== folder) : [...before, folder]));
  return { collapsed, toggle };
}

/** Which connections are selected for bulk actions. `toggle` must be stable. */
interface Selection {
  ids: ReadonlySet<string>;
  toggle: (id: string) => void;
}

interface RowProps {
  connection: Summary;
  /** Undefined where nothing can be selected. */
  isSelected?: boolean | undefined;
  toggle?: ((id: string) => void) | undefined;
}

/** Schedules without a time of the next run. */
const UNTIMED: Partial<Record<Summary['schedule']['type'], string>> = { manual: 'Manual', continuous: 'Continuous' };

/** Memoised, so that scrolling only renders rows that become visible. */
const Row = memo(function ConnectionRow({ connection, isSelected, toggle }: RowProps) {
  const { id, name, source, destination, recent_runs, last_run, next_run_at, fresh_at, tags } = connection;
  return (
    <article className="connection" data-selectable={toggle ? true : undefined}>
      {toggle && (
        <Checkbox
          className="connection-select"
          aria-label={`Select ${name}`}
          checked={isSelected === true}
          onChange={() => toggle(id)}
        />
      )}
      <div className="connection-name">
        <Link href={`/console/connections/${id}`} title={name}>
          {name}
        </Link>
        <small title={[`${source.name} → ${destination.name}`, ...tags].join(' · ')}>
          {source.name} <Icon name="arrow" size={12} /> {destination.name}
          {tags.map((tag) => (
            <Link key={tag} href={`/console/connections?tag=${encodeURIComponent(tag)}`} className="tag">
              {tag}
            </Link>
          ))}
        </small>
      </div>
      <div className="connection-state">
        <Status value={stateOf(connection)} />
        {connection.schema_change_status !== 'no_change' && <Status value="warning" label="Schema changed" />}
      </div>
      <RunStrip runs={recent_runs} />
      <span className="connection-when">
        <span className="only-phone">Last run </span>
        <RelativeTime at={last_run?.started_at ?? null} never="Never" />
        <small className="behind">
          <Freshness at={fresh_at} />
        </small>
      </span>
      <span className="connection-when">
        <span className="only-phone">Next run </span>
        <RelativeTime at={next_run_at} never={UNTIMED[connection.schedule.type] ?? '–'} />
      </span>
      <ConnectionMenu connection={connection} />
    </article>
  );
});
