import { Button, Checkbox, Select } from '@mantine/core';
import { useCallback, useDeferredValue, useState } from 'react';
import { Link, useSearchParams } from 'wouter';
import { connectionFilters, filterConnections } from '../../../connection-filters.ts';
import { usePermission } from '../../current-user.ts';
import { Empty } from '../../components/empty.tsx';
import { formatCount, pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { optionsOf } from '../../components/options.ts';
import { Page } from '../../components/page.tsx';
import { SearchField } from '../../components/search-field.tsx';
import { withFilters } from '../../saved-views/address.ts';
import { ViewsMenu } from '../../saved-views/views-menu.tsx';
import { BulkActions } from './bulk-actions.tsx';
import { ConnectionList } from './connection-list.tsx';
import { foldersOf } from './folder-rows.ts';
import { useSummaries } from './use-summaries.ts';
import type { Summary } from '../../answers.ts';

const STATES = optionsOf({
  '': 'All statuses',
  healthy: 'Healthy',
  running: 'Running',
  warning: 'Warning',
  failing: 'Failing',
  pending: 'Never run',
  paused: 'Paused',
  auto_disabled: 'Disabled',
  locked: 'Locked',
});

const SORTS = optionsOf({
  '': 'Newest first',
  name: 'By name',
  last_run: 'Last run first',
  next_run: 'Next run first',
  state: 'Problems first',
});

/** All connections, with a search that is kept in the address, so that it survives the back button. */
export default function ConnectionsPage() {
  const connections = useSummaries();
  const mayCreate = usePermission('connections.create');
  return (
    <Page
      title="Connections"
      lead="Pipelines from a source to a destination"
      actions={
        mayCreate && (
          <Button component={Link} href="/console/connections/new" leftSection={<Icon name="add" size={16} />}>
            New connection
          </Button>
        )
      }
    >
      <QueryView query={connections}>{(all) => (all.length === 0 ? <None /> : <Searchable all={all} />)}</QueryView>
    </Page>
  );
}

const None = () => (
  <Empty icon="connection" title="No connections yet">
    <p>A connection loads the streams of a source into a destination, manually or on a schedule.</p>
    <Button component={Link} href="/console/connections/new">
      New connection
    </Button>
  </Empty>
);

function Searchable({ all }: { all: Summary[] }) {
  const [search, setSearch] = useSearchParams();
  const { q, state, tag, folder, sort } = connectionFilters(search);
  const isGrouped = search.get('group') !== 'none';
  const { ids, toggle, setIds } = useSelectedIds();
  const deferred = useDeferredValue(q);
  const setFilter = (name: string, value: string | null) =>
    setSearch((before) => withFilters(before, { [name]: value }), { replace: true });
  const shown = filterConnections(all, { q: deferred, state, tag, folder, sort });
  const selected = shown.filter(({ id }) => ids.has(id));
  const folders = foldersOf(all);
  const tags = [...new Set(all.flatMap((one) => one.tags))].toSorted();
  return (
    <div className="stack">
      <div className="row connection-filters">
        <SearchField
          label="Search connections"
          placeholder="Name, folder, source, destination or tag"
          isWide
          value={q}
          onChange={(text) => setFilter('q', text)}
        />
        <Select aria-label="Status" data={STATES} value={state} onChange={(value) => setFilter('state', value)} />
        {(tags.length > 0 || tag !== '') && (
          <Select
            aria-label="Tag"
            data={[{ value: '', label: 'All tags' }, ...tags]}
            value={tag}
            searchable={tags.length > 10}
            onChange={(value) => setFilter('tag', value)}
          />
        )}
        {(folders.length > 0 || folder !== '') && (
          <Select
            aria-label="Folder"
            data={[{ value: '', label: 'All folders' }, ...folders]}
            value={folder}
            searchable={folders.length > 10}
            limit={200}
            onChange={(value) => setFilter('folder', value)}
          />
        )}
        <Select aria-label="Sort" data={SORTS} value={sort} onChange={(value) => setFilter('sort', value)} />
        <ViewsMenu page="connections" />
        <span className="dimmed" role="status">
          {shown.length === all.length
            ? pluralize(all.length, 'connection')
            : `${formatCount(shown.length)} of ${formatCount(all.length)}`}
        </span>
      </div>
      {shown.length === 0 ? (
        <Empty icon="search" title="No connections match">
          <Button variant="default" onClick={() => setSearch({}, { replace: true })}>
            Clear filters
          </Button>
        </Empty>
      ) : (
        <>
          <div className="row">
            <Checkbox
              label="Select all"
              checked={selected.length === shown.length}
              indeterminate={selected.length > 0 && selected.length < shown.length}
              onChange={(event) => setIds(new Set(event.currentTarget.checked ? shown.map(({ id }) => id) : []))}
            />
            {folders.length > 0 && (
              <Checkbox
                label="Group by folder"
                checked={isGrouped}
                onChange={(event) => setFilter('group', event.currentTarget.checked ? null : 'none')}
              />
            )}
            {selected.length > 0 && <BulkActions selected={selected} clear={() => setIds(new Set())} />}
          </div>
          <ConnectionList connections={shown} selection={{ ids, toggle }} isGrouped={isGrouped} />
        </>
      )}
    </div>
  );
}

function useSelectedIds() {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const toggle = useCallback((id: string) => {
    setIds((before) => {
      const after = new Set(before);
      if (!after.delete(id)) after.add(id);
      return after;
    });
  }, []);
  return { ids, toggle, setIds };
}
