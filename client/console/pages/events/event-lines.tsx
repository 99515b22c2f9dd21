import { Button } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import { type RouterOutputs, trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Icon } from '../../components/icon.tsx';
import { useAction } from '../../use-action.ts';
import { Severity } from '../triggers/severity.tsx';

export type Event = RouterOutputs['automation']['listEvents'][number];

/** A list of events that expand to their payload. */
export function EventLines({ events }: { events: Event[] }) {
  const [open, setOpen] = useState<string | null>(null);
  return (
    <ul className="events">
      {events.map((event) => (
        <li key={event.id}>
          <button
            type="button"
            className="event"
            aria-expanded={open === event.id}
            onClick={() => setOpen(open === event.id ? null : event.id)}
          >
            <span className="grow">
              <b>{event.summary}</b>
              <span className="dimmed case-facts">
                <code>{event.event}</code>
                {event.actor.name && ` · ${event.actor.name}`}
              </span>
            </span>
            <Severity value={event.severity} />
            <span className="dimmed nowrap">
              <RelativeTime at={event.occurred_at} />
            </span>
            <Icon name="down" size={16} />
          </button>
          {open === event.id && <Details event={event} />}
        </li>
      ))}
    </ul>
  );
}

/** The link to an export is created on request, for users who may export. */
function Download({ task_id }: { task_id: string }) {
  const link = useAction(trpc.account_connectors.exportLink, {
    failed: 'Export not downloaded',
    refresh: [],
    after: ({ url }) => window.location.assign(url),
  });
  return (
    <Button
      variant="default"
      size="xs"
      disabled={!usePermission('metadata.export')}
      loading={link.isPending}
      onClick={() => link.mutate({ task_id })}
    >
      Download
    </Button>
  );
}

const Details = ({ event }: { event: Event }) => (
  <div className="event-details">
    <div className="row">
      {event.connection_id && <Link href={`/console/connections/${event.connection_id}`}>View connection</Link>}
      {event.connection_id && event.connection_run_id && (
        <Link href={`/console/connections/${event.connection_id}/runs/${event.connection_run_id}`}>View run</Link>
      )}
      {event.event === 'metadata_export_succeeded' && <Download task_id={String(event.payload.task_id)} />}
      {event.case_ids.map((id) => (
        <Link key={id} href={`/console/cases/${id}`}>
          View case
        </Link>
      ))}
    </div>
    {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
    <pre className="code-block" tabIndex={0} aria-label="Event payload">
      {JSON.stringify(event.payload, null, 2)}
    </pre>
  </div>
);
