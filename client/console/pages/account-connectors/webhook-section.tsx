import { Button, NumberInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { trpc } from '../../api.ts';
import { Confirm } from '../../components/confirm.tsx';
import { CopyField } from '../../components/copy-field.tsx';
import { pluralize } from '../../components/format.ts';
import { Section } from '../../components/page.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { useAction } from '../../use-action.ts';

/** The address of a source that receives events, and what has arrived there. */
export function WebhookSection({ account_connector_id }: { account_connector_id: string }) {
  const inbox = useQuery(
    trpc.account_connectors.webhookInbox.queryOptions({ account_connector_id }, { refetchInterval: 15_000 }),
  );
  return (
    <Section title="Address" lead="Enter it where the sender asks for the URL of its webhook.">
      <QueryView query={inbox}>
        {(data) => (
          <div className="stack">
            <CopyField
              label="URL"
              value={data.address}
              description={
                data.previous_address_until !== null && (
                  <>
                    The address before it stops working <RelativeTime at={data.previous_address_until} />.
                  </>
                )
              }
            />
            <ul className="lines">
              <li>
                <span className="grow">Received</span>
                {pluralize(data.received_events, 'event')}, {pluralize(data.repeated_events, 'repetition')}
              </li>
              <li>
                <span className="grow">Stored now</span>
                {pluralize(data.stored_events, 'event')}
              </li>
              <li>
                <span className="grow">Last event</span>
                <RelativeTime at={data.last_received_at} never="None yet" />
              </li>
            </ul>
            <Rotation account_connector_id={account_connector_id} />
          </div>
        )}
      </QueryView>
    </Section>
  );
}

function Rotation({ account_connector_id }: { account_connector_id: string }) {
  const [overlap_hours, setHours] = useState(24);
  const rotate = useAction(trpc.account_connectors.rotateWebhookAddress, {
    done: 'Address changed',
    failed: 'Address not changed',
    refresh: [trpc.account_connectors.webhookInbox],
  });
  return (
    <Confirm
      title="Create a new address?"
      action="Create address"
      onConfirm={() => rotate.mutate({ account_connector_id, overlap_hours })}
      trigger={(open) => (
        <div>
          <Button variant="default" loading={rotate.isPending} onClick={open}>
            Create new address
          </Button>
        </div>
      )}
    >
      <NumberInput
        label="Overlap (hours)"
        description="The present address works that much longer. With 0 it stops at once."
        min={0}
        max={168}
        allowDecimal={false}
        value={overlap_hours}
        onChange={(value) => setHours(typeof value === 'number' ? value : 0)}
      />
    </Confirm>
  );
}
