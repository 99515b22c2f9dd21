import { Button, Switch } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { client, type RouterOutputs, trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Empty } from '../../components/empty.tsx';
import { formatCompact, pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Page, Section } from '../../components/page.tsx';
import { labelOf, Status } from '../../components/status.tsx';
import { useAction } from '../../use-action.ts';
import { NotificationSettings } from './notification-settings.tsx';
import { Notifications } from './notifications.tsx';
import { Severity } from './severity.tsx';

type Trigger = RouterOutputs['automation']['listTriggers'][number];

/** The account's own triggers and the system triggers. */
export default function TriggersPage() {
  const triggers = useQuery(
    trpc.automation.listTriggers.queryOptions({ include_system: true }, { refetchInterval: 15_000 }),
  );
  const mayCreate = usePermission('triggers.create');
  const create = mayCreate && (
    <Button component={Link} href="/console/triggers/new" leftSection={<Icon name="add" size={16} />}>
      New trigger
    </Button>
  );
  return (
    <Page title="Triggers" lead="Notifications and actions in response to events" actions={create}>
      <QueryView query={triggers}>
        {(all) => {
          const own = all.filter(({ is_system }) => !is_system);
          return (
            <div className="stack">
              {all.every(({ actions }) => actions.length === 0) && <Notifications />}
              {own.length === 0 ? (
                <Empty icon="trigger" title="No triggers yet">
                  <p>
                    A trigger evaluates events, opens a case, notifies people or systems, and can pause or run
                    connections.
                  </p>
                  {create}
                </Empty>
              ) : (
                <Section title="Your triggers">
                  <List triggers={own} />
                </Section>
              )}
              <Section title="System triggers" lead="Built in. You can add actions, but not edit the rules.">
                <List triggers={all.filter(({ is_system }) => is_system)} />
              </Section>
              <NotificationSettings />
            </div>
          );
        }}
      </QueryView>
    </Page>
  );
}

const List = ({ triggers }: { triggers: Trigger[] }) => (
  <ul className="trigger-list">
    {triggers.map((trigger) => (
      <li key={trigger.id}>
        <Line trigger={trigger} />
      </li>
    ))}
  </ul>
);

function Line({ trigger }: { trigger: Trigger }) {
  const { id, name, enabled, severity, normalized_rule, actions, state, fire_count, open_cases_count } = trigger;
  const mayUpdate = usePermission('triggers.update');
  const isFaulty = state === 'errored' || state === 'auto_disabled';
  const update = useAction(trpc.automation.updateTrigger, {
    done: (saved) => `${name} ${saved.enabled ? 'enabled' : 'disabled'}`,
    failed: 'Trigger not updated',
    refresh: [trpc.automation.listTriggers],
    undo: {
      // Its error is gone with the first change.
      input: async (sent) => {
        const now = await client.automation.getTrigger.query({ trigger_id: id });
        return isFaulty || now.enabled === sent.enabled ? null : { trigger_id: id, enabled: now.enabled };
      },
      isCurrent: async (saved) =>
        (await client.automation.getTrigger.query({ trigger_id: id })).enabled === saved.enabled,
    },
  });
  return (
    <>
      <Switch
        aria-label={`Enable ${name}`}
        checked={enabled}
        disabled={!mayUpdate || update.isPending}
        onChange={(event) => update.mutate({ trigger_id: id, enabled: event.currentTarget.checked })}
      />
      <div className="grow trigger-words">
        <div className="row">
          <Link href={`/console/triggers/${id}`}>
            <b>{name}</b>
          </Link>
          <Severity value={severity} />
          {isFaulty && <Status value="failed" label={labelOf(state)} />}
        </div>
        <code className="rule-line" title={normalized_rule}>
          {normalized_rule}
        </code>
      </div>
      <div className="trigger-facts dimmed">
        <span>{actions.length === 0 ? 'Opens a case' : pluralize(actions.length, 'action')}</span>
        <span>
          Fired {fire_count === 1 ? 'once' : `${formatCompact(fire_count)} times`}
          {trigger.last_fired_at && (
            <>
              , <RelativeTime at={trigger.last_fired_at} />
            </>
          )}
        </span>
        {open_cases_count > 0 && (
          <Link href={`/console/cases?trigger=${id}`}>{pluralize(open_cases_count, 'open case')}</Link>
        )}
      </div>
    </>
  );
}
