import { RelativeTime } from '../../components/relative-time.tsx';
import { plural } from '../../components/format.ts';
import { Section } from '../../components/page.tsx';
import { Status, wordsOf } from '../../components/status.tsx';
import { ACTIONS } from '../triggers/actions-editor.tsx';
import type { Case } from './case.tsx';

type Delivery = NonNullable<Case['deliveries']>[number];

const TONES: Record<Delivery['status'], string> = {
  pending: 'queued',
  retrying: 'retrying',
  delivered: 'succeeded',
  failed: 'failed',
  suppressed: 'skipped',
  cancelled: 'skipped',
};

/** What was done for the case, and whether it came through. */
export const Deliveries = ({ deliveries }: { deliveries: Delivery[] }) => (
  <Section title="Deliveries" lead={deliveries.length === 0 ? 'Nothing was told or done.' : undefined}>
    <ul className="lines">
      {deliveries.map((delivery) => (
        <li key={delivery.id}>
          <span className="grow">
            <b>{labelOf(delivery.type)}</b>
            <span className="dimmed case-facts">
              {wordsOf(delivery.reason)} · {plural(delivery.attempts, 'attempt')} ·{' '}
              <RelativeTime at={delivery.delivered_at ?? delivery.last_attempt_at ?? delivery.created_at} />
            </span>
            {delivery.error && <span className="stream-error">{delivery.error}</span>}
          </span>
          <Status value={TONES[delivery.status]} label={delivery.status} />
        </li>
      ))}
    </ul>
  </Section>
);

const labelOf = (type: string) => (type in ACTIONS ? ACTIONS[type as keyof typeof ACTIONS].label : wordsOf(type));
