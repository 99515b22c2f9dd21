import type { Cli } from '../context.ts';
import { UsageError } from '../exit.ts';
import { moment, number } from '../style.ts';
import { showThing } from '../table.ts';
import { find } from './account-connectors.ts';

interface Asked {
  flags: { json: boolean; rotate: boolean; overlap?: number };
  /** Name, prefix or id from the command line. */
  wanted: string;
}

export async function webhookOf(cli: Cli, { flags, wanted }: Asked): Promise<void> {
  const { json, rotate, overlap } = flags;
  if (overlap !== undefined && !rotate) throw new UsageError('--overlap needs --rotate');
  const api = await cli.api();
  const { id: account_connector_id } = await find(api, { type: 'source', wanted });
  const inbox = rotate
    ? await api.account_connectors.rotateWebhookAddress.mutate({
        account_connector_id,
        ...(overlap !== undefined && { overlap_hours: overlap }),
      })
    : await api.account_connectors.webhookInbox.query({ account_connector_id });
  const { previous_address_until: until } = inbox;
  showThing(cli, inbox, {
    json,
    lines: {
      address: inbox.address,
      ...(until !== null && { 'previous address': `works until ${moment(until)}` }),
      stored: `${number(inbox.stored_events)} events, ${number(inbox.stored_bytes)} bytes`,
      received: `${number(inbox.received_events)} events, and ${number(inbox.repeated_events)} repetitions`,
      last: moment(inbox.last_received_at),
      types: inbox.event_types.join(', ') || '–',
    },
  });
}
