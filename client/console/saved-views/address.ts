import type { RouterOutputs } from '../api.ts';

export type SavedView = RouterOutputs['saved_views']['list'][number];

/** The parameter that names the view with which the filters of an address began. */
export const VIEW = 'view';

/** The address with other filters; null or an empty text removes a filter. */
export function withFilters(search: URLSearchParams, changes: Record<string, string | null>): URLSearchParams {
  const after = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) after.set(name, value);
    else after.delete(name);
  }
  return after;
}

/** The filters of an address in an order of their own, for comparisons. Empty if there are none. */
export function filtersOf(search: URLSearchParams): string {
  const filters = new URLSearchParams([...search].filter(([name, value]) => name !== VIEW && value !== ''));
  filters.sort();
  return filters.toString();
}

/** A view as a link: its filters, and which view they are of. */
export const hrefOf = ({ id, page, query }: Pick<SavedView, 'id' | 'page' | 'query'>): string =>
  `/console/${page}?${VIEW}=${id}&${query}`;
