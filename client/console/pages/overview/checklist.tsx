import { Button, Progress } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { trpc } from '../../api.ts';
import { Icon } from '../../components/icon.tsx';
import { Section } from '../../components/page.tsx';
import { useCurrentUser, usePermission } from '../../current-user.ts';
import { useAction } from '../../use-action.ts';
import type { Summary } from '../../answers.ts';

interface Step {
  label: string;
  href: string;
  isDone: boolean;
}

/** The first steps in an account. It ends once all are done, or is closed. */
export function Checklist({ connections }: { connections: Summary[] }) {
  const { onboarding_state: onboarding } = useCurrentUser();
  const may = usePermission('connections.create');
  if (!may || onboarding.dismissed || onboarding.is_complete) return null;
  return <Steps connections={connections} />;
}

function Steps({ connections }: { connections: Summary[] }) {
  const { onboarding_state: onboarding } = useCurrentUser();
  const steps = useSteps(connections);
  const { completed_steps, current_step, data } = onboarding;
  const close = useAction(trpc.users.putOnboardingState, {
    done: 'Checklist closed',
    failed: 'Checklist not closed',
    refresh: [trpc.users.me],
    undo: { input: () => ({ completed_steps, current_step, data, dismissed: false }) },
  });
  if (!steps || steps.every(({ isDone }) => isDone)) return null;
  const done = steps.filter(({ isDone }) => isDone).length;
  return (
    <Section
      title="Getting started"
      lead={`${done} of ${steps.length} steps done`}
      actions={
        <Button
          size="xs"
          variant="default"
          loading={close.isPending}
          onClick={() => close.mutate({ completed_steps, current_step, data, dismissed: true })}
        >
          Close checklist
        </Button>
      }
    >
      <Progress aria-label="Steps done" value={(100 * done) / steps.length} size="sm" />
      <ol className="lines">
        {steps.map(({ label, href, isDone }) => (
          <li key={label}>
            {isDone ? (
              <>
                <span className="grow line-step dimmed">
                  <Icon name="check" size={16} />
                  {label}
                </span>
                <span className="dimmed">Done</span>
              </>
            ) : (
              <Link href={href} className="grow line-step">
                <Icon name="arrow" size={16} />
                {label}
              </Link>
            )}
          </li>
        ))}
      </ol>
    </Section>
  );
}

/** Null until the account is known. */
function useSteps(connections: Summary[]): Step[] | null {
  const mayNotify = usePermission('triggers.update');
  const sides = useQuery(trpc.account_connectors.list.queryOptions({}));
  const triggers = useQuery(
    trpc.automation.listTriggers.queryOptions({ include_system: true }, { enabled: mayNotify }),
  );
  if (!sides.data || (mayNotify && !triggers.data)) return null;
  const has = (type: string) => sides.data.some((one) => one.connector_type === type && one.status === 'active');
  const first = connections[0];
  const steps: Step[] = [
    { label: 'Create a source', href: '/console/sources/new', isDone: has('source') },
    { label: 'Create a destination', href: '/console/destinations/new', isDone: has('destination') },
    { label: 'Create a connection', href: '/console/connections/new', isDone: first !== undefined },
    {
      label: 'Complete a run',
      href: first ? `/console/connections/${first.id}` : '/console/connections/new',
      isDone: connections.some(({ last_run }) => last_run?.status === 'succeeded'),
    },
  ];
  const notifies = triggers.data?.some(({ actions }) => actions.length > 0) === true;
  const notify = { label: 'Set up notifications', href: '/console/triggers', isDone: notifies };
  return mayNotify ? [...steps, notify] : steps;
}
