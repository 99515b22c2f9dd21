import { Button, Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useDeferredValue } from 'react';
import { Link, useSearchParams } from 'wouter';
import { trpc } from '../../api.ts';
import { useMay } from '../../current-user.ts';
import { Empty } from '../../components/empty.tsx';
import { plural } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { optionsOf } from '../../components/options.ts';
import { Page } from '../../components/page.tsx';
import { SearchField } from '../../components/search-field.tsx';
import { ConnectionList, matches, stateOf, type Summary } from './connection-list.tsx';

const STATES = optionsOf({
  '': 'Every state',
  healthy: 'Healthy',
  running: 'Running',
  warning: 'Warning',
  failing: 'Failing',
  pending: 'Never run',
  paused: 'Paused',
  auto_disabled: 'Disabled by failures',
  locked: 'Locked',
});

/** Every connection, to be searched. What is searched for is in the address, so that "back" finds it again. */
export default function ConnectionsPage() {
  const connections = useQuery(trpc.connections.summaries.queryOptions({}, { refetchInterval: 5_000 }));
  const mayCreate = useMay('connections.create');
  return (
    <Page
      title="Connections"
      lead="Pipelines from a source to a destination."
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
  <Empty icon="connection" title="No connection yet">
    <p>A connection moves the streams of a source into a destination, by hand or on a schedule.</p>
    <Button component={Link} href="/console/connections/new">
      Make the first one
    </Button>
  </Empty>
);

function Searchable({ all }: { all: Summary[] }) {
  const [search, setSearch] = useSearchParams();
  const text = search.get('q') ?? '';
  const state = search.get('state') ?? '';
  const deferred = useDeferredValue(text.trim());
  const put = (name: string, value: string) =>
    setSearch(
      (before) => {
        const after = new URLSearchParams(before);
        if (value === '') after.delete(name);
        else after.set(name, value);
        return after;
      },
      { replace: true },
    );
  const shown = all.filter(
    (connection) =>
      (state === '' || stateOf(connection) === state) && (deferred === '' || matches(connection, deferred)),
  );
  return (
    <div className="stack">
      <div className="row">
        <SearchField
          label="Search connections"
          placeholder="Name, source, destination or tag"
          isWide
          value={text}
          onChange={(q) => put('q', q)}
        />
        <Select aria-label="State" data={STATES} value={state} onChange={(value) => put('state', value ?? '')} />
        <span className="dimmed" role="status">
          {shown.length === all.length ? plural(all.length, 'connection') : `${shown.length} of ${all.length}`}
        </span>
      </div>
      {shown.length === 0 ? (
        <Empty icon="search" title="No connection is like that">
          <Button variant="default" onClick={() => setSearch({}, { replace: true })}>
            Show all
          </Button>
        </Empty>
      ) : (
        <ConnectionList connections={shown} />
      )}
    </div>
  );
}
