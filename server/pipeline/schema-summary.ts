import { changeName, type SchemaChange } from './schema-diff.ts';
import { fieldName } from './transfer-plan.ts';

/** Names of what changed, as events have them: `orders`, `shop.orders`, `shop.orders.total`. At most 100 of each. */
export interface ChangeSummary {
  streams_added: string[];
  streams_removed: string[];
  streams_updated: string[];
  fields_added: string[];
  fields_removed: string[];
  fields_updated: string[];
}

const LISTED = 100;

export function summarize(changes: readonly SchemaChange[]): ChangeSummary {
  const stream = ({ namespace, stream_name }: SchemaChange) =>
    namespace ? `${namespace}.${stream_name}` : stream_name;
  const names = (wanted: (change: SchemaChange) => boolean, name: (change: SchemaChange) => string) =>
    [...new Set(changes.filter(wanted).map(name))].slice(0, LISTED);
  const streams = (wanted: string) => names((change) => changeName(change) === wanted, stream);
  const fields = (wanted: string) =>
    names(
      (change) => changeName(change) === wanted,
      (change) => `${stream(change)}.${fieldName(change.field_path ?? [])}`,
    );
  return {
    streams_added: streams('stream_added'),
    streams_removed: streams('stream_removed'),
    streams_updated: names(({ subject }) => subject !== 'stream', stream),
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
