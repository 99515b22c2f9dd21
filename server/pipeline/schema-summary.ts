import { changeName, factText, type SchemaChange } from './schema-diff.ts';
import { fieldName } from './transfer-plan.ts';

/** The names of changed streams and fields, as events show them: `orders`, `shop.orders.total`. At most 100 of each. */
export interface ChangeSummary {
  streams_added: string[];
  streams_removed: string[];
  streams_updated: string[];
  fields_added: string[];
  fields_removed: string[];
  fields_updated: string[];
}

const LISTED = 100;

export const qualifiedName = ({ namespace, name }: { namespace: string | null; name: string }) =>
  namespace ? `${namespace}.${name}` : name;

export const streamOf = ({ namespace, stream_name }: Pick<SchemaChange, 'namespace' | 'stream_name'>) =>
  qualifiedName({ namespace, name: stream_name });

export function summarize(changes: readonly SchemaChange[]): ChangeSummary {
  const names = (wanted: (change: SchemaChange) => boolean, name: (change: SchemaChange) => string) =>
    [...new Set(changes.filter(wanted).map(name))].slice(0, LISTED);
  const streams = (wanted: string) => names((change) => changeName(change) === wanted, streamOf);
  const fields = (wanted: string) =>
    names(
      (change) => changeName(change) === wanted,
      (change) => `${streamOf(change)}.${fieldName(change.field_path ?? [])}`,
    );
  return {
    streams_added: streams('stream_added'),
    streams_removed: streams('stream_removed'),
    streams_updated: names(({ subject }) => subject !== 'stream', streamOf),
    fields_added: fields('field_added'),
    fields_removed: fields('field_removed'),
    fields_updated: fields('field_type_changed'),
  };
}

/** `: 2 streams added, 1 field removed`; empty when nothing changed. */
export function summaryText(summary: ChangeSummary): string {
  const parts = Object.entries(summary)
    .filter(([, names]) => names.length > 0)
    .map(([key, { length }]) => {
      const [noun = '', verb = ''] = key.split('_');
      const more = length === LISTED ? ' or more' : '';
      return `${length}${more} ${length === 1 ? noun.slice(0, -1) : noun} ${verb === 'updated' ? 'changed' : verb}`;
    });
  return parts.length === 0 ? '' : `: ${parts.join(', ')}`;
}

const EXPLAINED = 3;

/**
 * What changed at the source and what to do, as the end of a sentence. Names the first three of the changes, and the
 * connection where the text is not shown as part of one.
 */
export function reviewText(changes: readonly SchemaChange[], connection?: { name: string }): string {
  const noun = changes.length === 1 ? 'change' : 'changes';
  return `${changesText(changes)}. Review the schema ${noun}${connection ? ` of connection ${connection.name}` : ''} to resume`;
}

/** What changed at the source, as a part of a sentence. Names the first three of the changes. */
export function changesText(changes: readonly SchemaChange[]): string {
  const texts = changes.slice(0, EXPLAINED).map(changeText);
  const more = changes.length - texts.length;
  return [...texts, ...(more > 0 ? [`${more} more`] : [])].join('; ');
}

function changeText(change: SchemaChange): string {
  const { namespace, subject, field_path, before, after } = change;
  const stream = streamOf(change);
  const [old, now] = [factText(before), factText(after)];
  const named = {
    // Of the sources, only databases have namespaces.
    stream: `${namespace === null ? 'stream' : 'table'} ${stream}`,
    field: `field ${fieldName(field_path ?? [])} of ${stream}`,
    primary_key: `the primary key of ${stream}`,
    cursor: `the cursor of ${stream}`,
  }[subject];
  if (subject === 'primary_key' || subject === 'cursor')
    return `${named} changed from ${old ?? 'none'} to ${now ?? 'none'}`;
  if (before === null) return `${named} is new in the source`;
  return after === null ? `${named} no longer exists in the source` : `${named} changed from ${old} to ${now}`;
}
