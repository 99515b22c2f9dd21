import type { RouterOutputs } from '../../api.ts';
import type { CatalogItem } from '../../answers.ts';

export type Source = RouterOutputs['account_connectors']['get'];

export interface FoundStream {
  item: CatalogItem;
  /** Names of the fields that the search found. */
  fields: string[];
}

const MAX_FIELDS = 6;

/** The streams whose name contains the text, then those with a field that does. */
export function findStreams(items: readonly CatalogItem[], text: string): FoundStream[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return items.map((item) => ({ item, fields: [] }));
  const found = items.map((item) => ({
    item,
    isNamed: nameOf(item).toLowerCase().includes(wanted),
    fields: item.fields.filter(({ name }) => name.toLowerCase().includes(wanted)).map(({ name }) => name),
  }));
  const cut = (fields: string[]) =>
    fields.length > MAX_FIELDS ? [...fields.slice(0, MAX_FIELDS), `${fields.length - MAX_FIELDS} more`] : fields;
  return found
    .filter(({ isNamed, fields }) => isNamed || fields.length > 0)
    .toSorted((a, b) => Number(b.isNamed) - Number(a.isNamed))
    .map(({ item, fields }) => ({ item, fields: cut(fields) }));
}

export const nameOf = ({ namespace, name }: { namespace: string | null; name: string }) =>
  namespace === null ? name : `${namespace}.${name}`;
