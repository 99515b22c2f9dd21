import { Progress } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { trpc } from '../../api.ts';
import { formatCount, formatDay } from '../../components/format.ts';
import { Section } from '../../components/page.tsx';
import { labelOf, Status } from '../../components/status.tsx';
import type { Usage } from '../../answers.ts';

const NAMES: Record<string, string> = {
  max_connections: 'Connections',
  max_sources: 'Sources',
  max_destinations: 'Destinations',
  max_users: 'Users',
  max_triggers: 'Triggers',
  credits_included: 'Credits this billing period',
};
const COLOURS = { ok: undefined, warning: 'yellow', reached: 'red' } as const;

/** How much of the plan is used. Once a limit is reached, requests fail with 402, so it is shown here first. */
export function PlanLimits({ usage }: { usage: Usage }) {
  const plans = useQuery(trpc.billing.plans.queryOptions());
  const plan = plans.data?.find(({ is_current }) => is_current);
  const { start, end } = usage.billing_period;
  const limited = usage.limits.filter(({ limit }) => limit !== null);
  return (
    <Section
      title={plan ? `${plan.name} plan` : 'Plan'}
      lead={`${plan ? `${plan.description.replace(/\.?$/, '.')} ` : ''}Billing period: ${formatDay(start)} to ${formatDay(end)}`}
    >
      {usage.projection?.will_exceed && (
        <p className="usage-warning">
          At this pace, usage reaches {formatCount(usage.projection.credits_at_period_end)} credits by the end of the
          period, more than the plan includes.
        </p>
      )}
      {limited.length === 0 && <p className="dimmed unlimited">This plan has no limits</p>}
      <ul className="limits">
        {usage.limits.map(({ key, limit, used, percent, status }) => (
          <li key={key}>
            <div className="between">
              <span>{NAMES[key] ?? key}</span>
              <span className="number">
                {status !== 'ok' && (
                  <Status value={status === 'reached' ? 'failed' : 'warning'} label={labelOf(status)} />
                )}{' '}
                {formatCount(used)} {limit === null ? '' : `of ${formatCount(limit)}`}
              </span>
            </div>
            {limit !== null && (
              <Progress
                value={Math.min(100, percent)}
                color={COLOURS[status]}
                aria-label={`${NAMES[key] ?? key}: ${percent} %`}
              />
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}
