import { RelativeTime } from '../../components/relative-time.tsx';
import { pluralize } from '../../components/format.ts';
import { Section } from '../../components/page.tsx';
import { labelOf, Status } from '../../components/status.tsx';
import { ACTIONS } from '../triggers/actions-editor.tsx';
import type { Case } from '../../answers.ts';

type Delivery = NonNullable<Case['deliveries']>[number];

const TONES: Record<Delivery['status'], string> = {
  pending: 'queued',
  retrying: 'retrying',
  delivered: 'succeeded',
  failed: 'failed',
  suppressed: 'skipped',
  cancelled: 'skipped',
};

/** The actions taken for the case, with their results. */
export const Deliveries = ({ deliveries }: { deliveries: Delivery[] }) => (
  <Section title="Deliveries" lead={deliveries.length === 0 ? 'No notifications sent' : undefined}>
    <ul className="lines">
      {deliveries.map((delivery) => (
        <li key={delivery.id}>
          <span className="grow">
            <b>{actionLabel(delivery.type)}</b>
            <span className="dimmed case-facts">
              {labelOf(delivery.reason)} · {pluralize(delivery.attempts, 'attempt')} ·{' '}
              <RelativeTime at={delivery.delivered_at ?? delivery.last_attempt_at ?? delivery.created_at} />
            </span>
            {delivery.status === 'pending' && delivery.held_until && (
              <span className="dimmed case-facts">
                {delivery.delivered_to.length > 0 && `Sent to ${delivery.delivered_to.join(', ')}. The rest is `}
                {delivery.delivered_to.length > 0 ? 'held' : 'Held'} by quiet hours, sent{' '}
                <RelativeTime at={delivery.held_until} />
              </span>
            )}
            {delivery.error && <span className="stream-error">{delivery.error}</span>}
          </span>
          <Status value={TONES[delivery.status]} label={labelOf(delivery.status)} />
        </li>
      ))}
    </ul>
  </Section>
);

const actionLabel = (type: string) => (type in ACTIONS ? ACTIONS[type as keyof typeof ACTIONS].label : labelOf(type));
