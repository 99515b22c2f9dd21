import { useState } from 'react';
import { Link } from 'wouter';
import type { RouterOutputs } from '../../api.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Icon } from '../../components/icon.tsx';
import { labelOf } from '../../components/status.tsx';
import { useNames } from './use-names.ts';

type Entry = RouterOutputs['audit']['list'][number];
type Names = ReadonlyMap<string, string>;

/** Entries that expand to all that is known of them. */
export function AuditLines({ entries }: { entries: Entry[] }) {
  const [open, setOpen] = useState<string | null>(null);
  const names = useNames(entries);
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
              <b>{titleOf(entry, names)}</b>
              <span className="dimmed case-facts">
                <code>{entry.action}</code>
                {` · ${actorOf(entry, names)}`}
                {entry.address && ` · ${entry.address}`}
              </span>
            </span>
            <span className="dimmed nowrap">
              <RelativeTime at={entry.occurred_at} />
            </span>
            <Icon name="down" size={16} />
          </button>
          {open === entry.id && <Details entry={entry} names={names} />}
        </li>
      ))}
    </ul>
  );
}

/** Uses of secrets have the id of the user alone. */
const actorOf = ({ actor: { type, id, name } }: Entry, names: Names) =>
  name ?? (id === null ? undefined : names.get(id)) ?? labelOf(type);

function titleOf({ kind, operation, resource, code, count }: Entry, names: Names): string {
  const about = resource ? `: ${labelOf(resource.type)} ${nameOf(resource, names)}` : '';
  const refused = code === null ? '' : ` (${code}${count > 1 ? `, ${count} times` : ''})`;
  return `${labelOf(operation ?? kind)}${refused}${about}`;
}

/** A role of a user has the id of the user, and that of the role as its name. */
function nameOf({ id, name }: NonNullable<Entry['resource']>, names: Names): string {
  const role = name === null ? undefined : names.get(name);
  if (role !== undefined && name !== id) return `${role} of ${names.get(id) ?? id}`;
  return role ?? name ?? names.get(id) ?? id;
}

const Details = ({ entry, names }: { entry: Entry; names: Names }) => (
  <div className="event-details">
    <div className="row">
      {entry.request_id && <Link href={`/console/audit?request_id=${entry.request_id}`}>Entries of this request</Link>}
      {entry.resource && <Link href={`/console/audit?resource_id=${entry.resource.id}`}>Entries of this resource</Link>}
    </div>
    {(entry.before ?? entry.after) && <Values before={entry.before} after={entry.after} names={names} />}
    {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
    <pre className="code-block" tabIndex={0} aria-label="Entry">
      {JSON.stringify({ ...entry, before: undefined, after: undefined }, null, 2)}
    </pre>
  </div>
);

function Values({ before, after, names }: Pick<Entry, 'before' | 'after'> & { names: Names }) {
  const keys = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const named = (value: string) => (names.has(value) ? `${names.get(value)} (${value})` : value);
  const withNames = (_key: string, value: unknown) => (typeof value === 'string' ? named(value) : value);
  const text = (value: unknown) =>
    value === undefined ? '' : typeof value === 'string' ? named(value) : JSON.stringify(value, withNames);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
    <div className="table-frame" tabIndex={0} role="region" aria-label="Changes">
      <table className="table stacked">
        <thead>
          <tr>
            <th>Value</th>
            <th>Before</th>
            <th>After</th>
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <tr key={key}>
              <td>{key}</td>
              <td data-label="Before">{text(before?.[key])}</td>
              <td data-label="After">{text(after?.[key])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
