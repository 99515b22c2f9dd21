import { useState } from 'react';
import { Link } from 'wouter';
import type { RouterOutputs } from '../../api.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Icon } from '../../components/icon.tsx';
import { labelOf } from '../../components/status.tsx';

type Entry = RouterOutputs['audit']['list'][number];

/** Entries that expand to all that is known of them. */
export function AuditLines({ entries }: { entries: Entry[] }) {
  const [open, setOpen] = useState<string | null>(null);
  return (
    <ul className="events">
      {entries.map((entry) => (
        <li key={entry.id}>
          <button
            type="button"
            className="event"
            aria-expanded={open === entry.id}
            onClick={() => setOpen(open === entry.id ? null : entry.id)}
          >
            <span className="grow">
              <b>{titleOf(entry)}</b>
              <span className="dimmed case-facts">
                <code>{entry.action}</code>
                {` · ${entry.actor.name ?? labelOf(entry.actor.type)}`}
                {entry.address && ` · ${entry.address}`}
              </span>
            </span>
            <span className="dimmed nowrap">
              <RelativeTime at={entry.occurred_at} />
            </span>
            <Icon name="down" size={16} />
          </button>
          {open === entry.id && <Details entry={entry} />}
        </li>
      ))}
    </ul>
  );
}

function titleOf({ kind, operation, resource, code, count }: Entry): string {
  const about = resource ? `: ${labelOf(resource.type)} ${resource.name ?? resource.id}` : '';
  const refused = code === null ? '' : ` (${code}${count > 1 ? `, ${count} times` : ''})`;
  return `${labelOf(operation ?? kind)}${refused}${about}`;
}

const Details = ({ entry }: { entry: Entry }) => (
  <div className="event-details">
    <div className="row">
      {entry.request_id && <Link href={`/console/audit?request_id=${entry.request_id}`}>Entries of this request</Link>}
      {entry.resource && <Link href={`/console/audit?resource_id=${entry.resource.id}`}>Entries of this resource</Link>}
    </div>
    {(entry.before ?? entry.after) && <Values before={entry.before} after={entry.after} />}
    {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
    <pre className="code-block" tabIndex={0} aria-label="Entry">
      {JSON.stringify({ ...entry, before: undefined, after: undefined }, null, 2)}
    </pre>
  </div>
);

function Values({ before, after }: Pick<Entry, 'before' | 'after'>) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const text = (value: unknown) =>
    value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
    <div className="table-frame" tabIndex={0} role="region" aria-label="Changes">
      <table className="table">
        <thead>
          <tr>
            <th>Value</th>
            <th>Before</th>
            <th>After</th>
          </tr>
        </thead>
        <tbody>
          {names.map((name) => (
            <tr key={name}>
              <td>{name}</td>
              <td>{text(before?.[name])}</td>
              <td>{text(after?.[name])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
