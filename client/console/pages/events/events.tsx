import { Button, Select } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'wouter';
import { type RouterInputs, trpc } from '../../api.ts';
import { Empty } from '../../components/empty.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Page } from '../../components/page.tsx';
import { labelOf } from '../../components/status.tsx';
import { withFilters } from '../../saved-views/address.ts';
import { ViewsMenu } from '../../saved-views/views-menu.tsx';
import { EventLines } from './event-lines.tsx';

type Filters = Pick<
  Exclude<RouterInputs['automation']['listEvents'], void>,
  'event' | 'category' | 'severity' | 'connection_id'
>;

const CATEGORIES = [
  'connection',
  'run',
  'stream',
  'schema',
  'account_connector',
  'user',
  'role',
  'api_key',
  'billing',
  'automation',
];
const SEVERITIES = ['critical', 'high', 'warning', 'info', 'low'];
const PAGE = 50;
const MAX_LIMIT = 1000;

/** Events of the account, newest first. The filters are in the address. */
export default function EventsPage() {
  const [search, setSearch] = useSearchParams();
  const [limit, setLimit] = useState(PAGE);
  const filters = Object.fromEntries(
    ['event', 'category', 'severity', 'connection_id'].flatMap((name) => {
      const value = search.get(name);
      return value === null ? [] : [[name, value]];
    }),
  ) as Filters;
  const events = useQuery(
    trpc.automation.listEvents.queryOptions(
      { ...filters, limit },
      { placeholderData: keepPreviousData, refetchInterval: 10_000 },
    ),
  );
  return (
    <Page title="Events" lead="Activity in this account, newest first. Triggers evaluate these events.">
      <FilterFields search={search} setSearch={(after) => (setLimit(PAGE), setSearch(after, { replace: true }))} />
      <QueryView query={events}>
        {(list) =>
          list.length === 0 ? (
            <Empty icon="search" title="No events match">
              <Button variant="default" onClick={() => setSearch({}, { replace: true })}>
                Clear filters
              </Button>
            </Empty>
          ) : (
            <section className="card" aria-label="Events">
              <EventLines events={list} />
              {list.length === limit && limit < MAX_LIMIT && (
                <Button
                  variant="subtle"
                  fullWidth
                  loading={events.isFetching}
                  onClick={() => setLimit(Math.min(MAX_LIMIT, limit * 2))}
                >
                  Show older events
                </Button>
              )}
            </section>
          )
        }
      </QueryView>
    </Page>
  );
}

interface FilterFieldsProps {
  search: URLSearchParams;
  setSearch: (after: URLSearchParams) => void;
}

const options = (values: readonly string[]) => values.map((value) => ({ value, label: labelOf(value) }));

function FilterFields({ search, setSearch }: FilterFieldsProps) {
  const language = useQuery(trpc.automation.ruleLanguage.queryOptions({}, { staleTime: Infinity }));
  const connections = useQuery(trpc.connections.summaries.queryOptions({}));
  const wanted = search.get('category');
  const kinds = (language.data?.kinds ?? []).filter(({ category }) => wanted === null || category === wanted);
  // An event type belongs to one category.
  const setFilter = (name: string, value: string | null) =>
    setSearch(withFilters(search, { [name]: value, ...(name === 'category' && { event: null }) }));
  const fields: [name: string, label: string, data: { value: string; label: string }[]][] = [
    ['category', 'All categories', options(CATEGORIES)],
    ['event', 'All event types', options(kinds.map(({ event }) => event))],
    ['severity', 'All severities', options(SEVERITIES)],
    ['connection_id', 'All connections', (connections.data ?? []).map(({ id, name }) => ({ value: id, label: name }))],
  ];
  return (
    <div className="event-filters">
      {fields.map(([name, label, data]) => (
        <Select
          key={name}
          aria-label={label}
          data={[{ value: '', label }, ...data]}
          searchable={data.length > 10}
          limit={200}
          value={search.get(name) ?? ''}
          onChange={(value) => setFilter(name, value)}
        />
      ))}
      <ViewsMenu page="events" />
    </div>
  );
}
