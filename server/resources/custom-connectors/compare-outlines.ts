import type { ConnectorOutline } from '../../connectors/contract/connector.ts';
import type { ManifestChange } from './schema.ts';

type Stream = ConnectorOutline['streams'][number];
type Subject = ManifestChange['subject'];

/** What differs between two manifests, in the order of the newer one. */
export function compareOutlines(before: ConnectorOutline, after: ConnectorOutline): ManifestChange[] {
  return [...streamChanges(before.streams, after.streams), ...parameterChanges(before.parameters, after.parameters)];
}

function streamChanges(before: Stream[], after: Stream[]): ManifestChange[] {
  const old = new Map(before.map((stream) => [stream.name, stream]));
  const names = new Set(after.map(({ name }) => name));
  const changed = after.flatMap((stream) => {
    const known = old.get(stream.name);
    return known ? changesWithin(known, stream) : [change('stream', stream.name, [null, null, stream.name])];
  });
  const removed = before
    .filter(({ name }) => !names.has(name))
    .map(({ name }) => change('stream', name, [null, name, null]));
  return [...changed, ...removed];
}

function changesWithin(before: Stream, after: Stream): ManifestChange[] {
  const facts: [Subject, string | null, string | null][] = [
    ['primary_key', listed(before.primary_key), listed(after.primary_key)],
    ['cursor', before.cursor_field, after.cursor_field],
  ];
  const own = facts
    .filter(([, one, other]) => one !== other)
    .map(([subject, one, other]) => change(subject, after.name, [null, one, other]));
  return [...own, ...fieldChanges(before, after)];
}

const listed = (key: string[]) => (key.length > 0 ? key.join(', ') : null);

/** Fields that requests find are compared at the next discovery. */
function fieldChanges({ fields: before }: Stream, { name: stream, fields: after }: Stream): ManifestChange[] {
  if (!before || !after) return [];
  return changesOf(before, after).map((facts) => change('field', stream, facts));
}

function parameterChanges(
  before: ConnectorOutline['parameters'],
  after: ConnectorOutline['parameters'],
): ManifestChange[] {
  const described = (all: ConnectorOutline['parameters']) =>
    Object.fromEntries(
      all.map(({ name, type, required, secret }) => [
        name,
        [type, required && 'required', secret && 'secret'].filter(Boolean).join(', '),
      ]),
    );
  return changesOf(described(before), described(after)).map((facts) => change('parameter', null, facts));
}

type Facts = [name: string | null, before: string | null, after: string | null];

function changesOf(before: Record<string, string>, after: Record<string, string>): Facts[] {
  const names = [...new Set([...Object.keys(after), ...Object.keys(before)])];
  return names.flatMap((name): Facts[] => {
    const [one, other] = [before[name] ?? null, after[name] ?? null];
    return one === other ? [] : [[name, one, other]];
  });
}

/** Whether sources fit new parameters is found out with their settings. */
const change = (subject: Subject, stream: string | null, [name, before, after]: Facts): ManifestChange => ({
  subject,
  stream,
  name,
  before,
  after,
  is_breaking: subject !== 'parameter' && (before !== null || subject === 'primary_key'),
});
