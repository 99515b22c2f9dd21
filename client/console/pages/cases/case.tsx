import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from 'wouter';
import { client, type RouterInputs, trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { pluralize } from '../../components/format.ts';
import { Icon, type IconName } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Page, Section } from '../../components/page.tsx';
import { labelOf, Status, wordsOf } from '../../components/status.tsx';
import { useAction } from '../../use-action.ts';
import { EventLines } from '../events/event-lines.tsx';
import { Severity } from '../triggers/severity.tsx';
import { titleOf } from './title.ts';
import { Deliveries } from './deliveries.tsx';
import type { Case } from '../../answers.ts';

type State = Case['status'];

/** One case: its facts, timeline, deliveries and events. Notifications link to it by `/cases/{id}`. */
export default function CasePage() {
  const { case_id = '' } = useParams();
  const query = useQuery(trpc.automation.getCase.queryOptions({ case_id }, { refetchInterval: 5_000 }));
  return <QueryView query={query}>{(data) => <Whole one={data} />}</QueryView>;
}

const Whole = ({ one }: { one: Case }) => (
  <Page
    title={titleOf(one)}
    mark={
      <>
        <Status value={one.status} />
        <Severity value={one.severity} />
      </>
    }
    back={{ href: '/console/cases', label: 'Cases' }}
    lead={
      <>
        Opened by <Link href={`/console/triggers/${one.trigger_id}`}>{one.trigger_name}</Link>
      </>
    }
    actions={<Actions one={one} />}
  >
    <Facts one={one} />
    <div className="columns case-columns">
      <Section title="Timeline">
        <ol className="timeline">
          {(one.timeline ?? []).map(({ at, type, actor, note }) => (
            <li key={at + type} data-type={type}>
              <b>{labelOf(type)}</b> {actor?.name && <span>by {actor.name}</span>}{' '}
              <span className="dimmed">
                <RelativeTime at={at} />
              </span>
              {note && <p className="dimmed">{note}</p>}
            </li>
          ))}
        </ol>
      </Section>
      <Deliveries deliveries={one.deliveries ?? []} />
    </div>
    <Section title="Events" lead={latestLead(one)}>
      <EventLines events={one.latest_events ?? []} />
    </Section>
  </Page>
);

const latestLead = ({ event_count, latest_events }: Case) =>
  event_count === 1 ? 'Latest event' : `Latest ${latest_events?.length ?? 0} of ${pluralize(event_count, 'event')}`;

const Facts = ({ one }: { one: Case }) => (
  <section className="card stack" aria-label="Details">
    {one.last_error && <p className="stream-error">{one.last_error}</p>}
    <dl className="facts">
      <div>
        <dt>Opened</dt>
        <dd>
          <RelativeTime at={one.opened_at} />
          {one.reopened_count > 0 && `, reopened ${pluralize(one.reopened_count, 'time')}`}
        </dd>
      </div>
      <div>
        <dt>Events</dt>
        <dd>
          {one.event_count}, last <RelativeTime at={one.last_event_at} />
        </dd>
      </div>
      {one.acknowledged_by && (
        <div>
          <dt>Acknowledged by</dt>
          <dd>{one.acknowledged_by.name}</dd>
        </div>
      )}
      {one.resolved_at && (
        <div>
          <dt>Resolved</dt>
          <dd>
            <RelativeTime at={one.resolved_at} />{' '}
            {one.resolved_by ? `by ${one.resolved_by.name}` : wordsOf(one.resolution ?? '')}
          </dd>
        </div>
      )}
      {one.connection_id && (
        <div>
          <dt>Connection</dt>
          <dd>
            <Link href={`/console/connections/${one.connection_id}`}>{connectionOf(one)}</Link>
          </dd>
        </div>
      )}
      {groupOf(one).map(([name, value]) => (
        <div key={name}>
          <dt>{labelOf(name)}</dt>
          <dd className="mono">{typeof value === 'string' ? value : JSON.stringify(value)}</dd>
        </div>
      ))}
    </dl>
  </section>
);

/** The connection's name as of the latest event, because the case only has its id. */
function connectionOf({ latest_events }: Case): string {
  const name = latest_events?.[0]?.payload.connection_name;
  return typeof name === 'string' ? name : 'View connection';
}

/** The values that the trigger groups by, except the connection, which is linked. */
const groupOf = ({ group, connection_id }: Case) =>
  Object.entries(group).filter(([, value]) => value !== connection_id);

const MOVES: Record<State, { to: State; label: string; icon: IconName }[]> = {
  open: [
    { to: 'acknowledged', label: 'Acknowledge', icon: 'profile' },
    { to: 'suppressed', label: 'Suppress', icon: 'pause' },
    { to: 'resolved', label: 'Resolve', icon: 'check' },
  ],
  acknowledged: [
    { to: 'suppressed', label: 'Suppress', icon: 'pause' },
    { to: 'resolved', label: 'Resolve', icon: 'check' },
  ],
  suppressed: [
    { to: 'open', label: 'Reopen', icon: 'refresh' },
    { to: 'resolved', label: 'Resolve', icon: 'check' },
  ],
  resolved: [{ to: 'open', label: 'Reopen', icon: 'refresh' }],
};

/** Only an open case returns to what it was: no call restores who acknowledged or resolved one, and when. */
const wayBack = ({ id, status }: Case): RouterInputs['automation']['updateCase'] | null =>
  status === 'open' ? { case_id: id, status } : null;

function Actions({ one }: { one: Case }) {
  const may = usePermission('cases.update');
  const update = useAction(trpc.automation.updateCase, {
    done: ({ number, status }) => `Case #${number} ${status === 'open' ? 'reopened' : status}`,
    refresh: [trpc.automation.getCase, trpc.automation.listCases],
    undo: {
      input: async ({ case_id }) => wayBack(await client.automation.getCase.query({ case_id })),
      isCurrent: async ({ status }) => (await client.automation.getCase.query({ case_id: one.id })).status === status,
    },
  });
  return MOVES[one.status].map(({ to, label, icon }) => (
    <Button
      key={to}
      variant={to === 'resolved' ? 'filled' : 'default'}
      leftSection={<Icon name={icon} size={16} />}
      disabled={!may || update.isPending}
      loading={update.isPending && update.variables.status === to}
      onClick={() => update.mutate({ case_id: one.id, status: to })}
    >
      {label}
    </Button>
  ));
}
