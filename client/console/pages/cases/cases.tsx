import { Button, SegmentedControl } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useSearchParams } from 'wouter';
import { type RouterOutputs, trpc } from '../../api.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Empty } from '../../components/empty.tsx';
import { pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { optionsOf } from '../../components/options.ts';
import { Page } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';
import { withFilters } from '../../saved-views/address.ts';
import { ViewsMenu } from '../../saved-views/views-menu.tsx';
import { Severity } from '../triggers/severity.tsx';
import { titleOf } from './title.ts';

type Case = RouterOutputs['automation']['listCases'][number];
type State = Case['status'];

const STATES = optionsOf<State | 'all'>({
  open: 'Open',
  acknowledged: 'Acknowledged',
  suppressed: 'Suppressed',
  resolved: 'Resolved',
  all: 'All',
});
const PAGE = 50;

/** The cases of the triggers. Status and trigger are in the address. */
export default function CasesPage() {
  const [search, setSearch] = useSearchParams();
  const status = (search.get('status') ?? 'open') as State | 'all';
  const trigger_id = search.get('trigger') ?? undefined;
  const [limit, setLimit] = useState(PAGE);
  const cases = useQuery(
    trpc.automation.listCases.queryOptions(
      {
        limit,
        ...(status !== 'all' && { status }),
        ...(trigger_id !== undefined && { trigger_id }),
      },
      { placeholderData: keepPreviousData, refetchInterval: 10_000 },
    ),
  );
  const setStatus = (value: string) =>
    setSearch((before) => withFilters(before, { status: value === 'open' ? null : value }));
  return (
    <Page title="Cases" lead="Problems that triggers opened, until they are resolved">
      <div className="row">
        <SegmentedControl className="scrolls" aria-label="Status" data={STATES} value={status} onChange={setStatus} />
        {trigger_id !== undefined && (
          <Button
            size="xs"
            variant="default"
            rightSection={<Icon name="close" size={14} />}
            onClick={() => setSearch((before) => withFilters(before, { trigger: null }))}
          >
            Clear trigger filter
          </Button>
        )}
        <ViewsMenu page="cases" />
      </div>
      <QueryView query={cases}>
        {(list) =>
          list.length === 0 ? (
            <Empty icon="case" title={status === 'open' ? 'No open cases' : 'No cases match'}>
              <p>A case opens when a trigger fires, and collects the events that belong to it.</p>
            </Empty>
          ) : (
            <section className="card" aria-label="Cases">
              <ul className="lines case-list">
                {list.map((one) => (
                  <li key={one.id}>
                    <Line one={one} />
                  </li>
                ))}
              </ul>
              {list.length === limit && (
                <Button variant="subtle" fullWidth loading={cases.isFetching} onClick={() => setLimit(limit + PAGE)}>
                  Show older cases
                </Button>
              )}
            </section>
          )
        }
      </QueryView>
    </Page>
  );
}

const Line = ({ one }: { one: Case }) => (
  <>
    <span className="grow">
      <Link href={`/console/cases/${one.id}`}>
        <b>{titleOf(one)}</b>
      </Link>
      <span className="dimmed case-facts">
        {one.trigger_name} · {pluralize(one.event_count, 'event')} · last <RelativeTime at={one.last_event_at} />
      </span>
    </span>
    <Severity value={one.severity} />
    <Status value={one.status} />
  </>
);
