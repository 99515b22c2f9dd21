import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useParams, useSearchParams } from 'wouter';
import { trpc } from '../../api.ts';
import { Empty } from '../../components/empty.tsx';
import { Failure } from '../../components/failure.tsx';
import { formatCount, pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { Page, Section } from '../../components/page.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { SearchField } from '../../components/search-field.tsx';
import { usePermission } from '../../current-user.ts';
import { useAction } from '../../use-action.ts';
import { CatalogStreams } from './catalog-streams.tsx';
import { Datasets } from './datasets.tsx';
import { findStreams, type Source } from './find-streams.ts';
import type { CatalogItem } from '../../answers.ts';

/** What a source offers: its streams and fields with the settings for all connections, and its datasets. */
export default function CatalogPage() {
  const { account_connector_id = '' } = useParams();
  const source = useQuery(trpc.account_connectors.get.queryOptions({ connector_type: 'source', account_connector_id }));
  return <QueryView query={source}>{(data) => <Catalog source={data} />}</QueryView>;
}

function Catalog({ source }: { source: Source }) {
  const key = { account_connector_id: source.id };
  const discovery = useQuery(
    trpc.account_connectors.discovery.queryOptions(key, {
      refetchInterval: ({ state }) => (isBusy(state.data?.task?.status) ? 1000 : false),
    }),
  );
  const refreshed = discovery.data?.catalog_refreshed_at ?? source.catalog_refreshed_at;
  const catalog = useQuery(trpc.account_connectors.catalog.queryOptions(key));
  const { refetch } = catalog;
  const seen = useRef(refreshed);
  useEffect(() => {
    if (seen.current !== refreshed) void refetch();
    seen.current = refreshed;
  }, [refreshed, refetch]);
  const entry = useQuery(
    trpc.connectors.get.queryOptions({ connector_type: 'source', connector_name: source.connector_name }),
  );
  const task = discovery.data?.task;
  return (
    <Page
      title={`Catalog of ${source.name}`}
      back={{ href: `/console/sources/${source.id}`, label: source.name }}
      lead={
        <>
          Refreshed <RelativeTime at={refreshed} never="never" />
        </>
      }
      actions={<Refresh source={source} busy={isBusy(task?.status)} />}
    >
      {task?.status === 'failed' && task.error && <Failure title="The last refresh failed" error={task.error} />}
      {entry.data?.capabilities.datasets && <Datasets source={source} />}
      <QueryView query={catalog}>{(items) => <Streams source={source} items={items} />}</QueryView>
    </Page>
  );
}

const isBusy = (status: string | undefined) => status === 'queued' || status === 'running';

function Refresh({ source, busy }: { source: Source; busy: boolean }) {
  const may = usePermission('sources.update');
  const discover = useAction(trpc.account_connectors.discover, {
    failed: 'Schema not refreshed',
    refresh: [trpc.account_connectors.discovery],
  });
  return (
    <Button
      variant="default"
      leftSection={<Icon name="refresh" size={16} />}
      disabled={!may}
      loading={discover.isPending || busy}
      onClick={() => discover.mutate({ account_connector_id: source.id })}
    >
      Refresh schema
    </Button>
  );
}

function Streams({ source, items }: { source: Source; items: CatalogItem[] }) {
  const [search, setSearch] = useSearchParams();
  const text = search.get('q') ?? '';
  const present = items.filter(({ removed_at }) => removed_at === null);
  const found = findStreams(present, text);
  const fields = present.reduce((sum, item) => sum + item.fields.length, 0);
  if (present.length === 0) {
    return (
      <Empty icon="source" title="No streams yet">
        <p>Streams appear here once the source passes its test and its schema is refreshed.</p>
      </Empty>
    );
  }
  return (
    <Section
      title="Streams"
      lead={`${pluralize(present.length, 'stream')}, ${formatCount(fields)} fields. Settings hold for every connection that sets nothing itself.`}
      actions={
        <SearchField
          label="Search streams and fields"
          value={text}
          onChange={(next) => setSearch(next === '' ? {} : { q: next }, { replace: true })}
        />
      }
    >
      {found.length === 0 ? (
        <p className="dimmed nothing">No streams or fields match</p>
      ) : (
        <CatalogStreams source={source} found={found} />
      )}
    </Section>
  );
}
