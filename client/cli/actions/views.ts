import type { ApiClient } from '../../api.ts';
import type { Cli } from '../context.ts';
import { UsageError } from '../exit.ts';
import { pick, pickWhole } from '../find.ts';
import { moment } from '../style.ts';
import { showList, showThing } from '../table.ts';
import { requireConfirmation } from './session.ts';

type View = Awaited<ReturnType<ApiClient['saved_views']['list']['query']>>[number];
export type ViewedList = View['page'];

export interface SavingView {
  json: boolean;
  page?: ViewedList;
  query?: string;
  share: boolean;
  overwrite: boolean;
}

/** A view of a list by its name: the caller's own comes before a shared one. */
export const findView = async (api: ApiClient, of: { page: ViewedList; wanted: string }): Promise<View> =>
  pick(await api.saved_views.list.query({ page: of.page }), of.wanted, 'view');

export async function listViews(cli: Cli, flags: { json: boolean; page?: ViewedList }): Promise<void> {
  const views = await (await cli.api()).saved_views.list.query({ page: flags.page });
  showList(cli, views, {
    json: flags.json,
    empty: 'No saved views yet',
    columns: {
      name: ({ name }) => name,
      list: ({ page }) => page,
      shared: ({ is_shared }) => (is_shared ? 'yes' : 'no'),
      filters: ({ query }) => query,
    },
    wide: {
      'created by': ({ created_by }) => created_by.name,
      changed: ({ updated_at }) => moment(updated_at),
      id: ({ id }) => id,
    },
  });
}

/** Creates a view. With `--overwrite`, the one of this name that is as private or shared gets the filters. */
export async function saveView(cli: Cli, flags: SavingView, name: string): Promise<void> {
  const { page = 'connections', query, share: is_shared } = flags;
  if (query === undefined) throw new UsageError('--query is missing, such as --query "state=failing&tag=sales"');
  const api = await cli.api();
  const known = flags.overwrite ? await api.saved_views.list.query({ page }) : [];
  const same = known.find((view) => view.is_shared === is_shared && view.name.toLowerCase() === name.toLowerCase());
  const saved = same
    ? await api.saved_views.update.mutate({ saved_view_id: same.id, query })
    : await api.saved_views.create.mutate({ page, name, query, is_shared });
  showThing(cli, saved, {
    json: flags.json,
    lines: {
      name: saved.name,
      id: saved.id,
      list: saved.page,
      filters: saved.query,
      shared: saved.is_shared ? 'with the account' : 'no',
    },
  });
}

export async function deleteView(cli: Cli, flags: { yes: boolean; page?: ViewedList }, wanted: string): Promise<void> {
  const api = await cli.api();
  const views = await api.saved_views.list.query({ page: flags.page });
  const alike = views.filter(({ name }) => name.toLowerCase() === wanted.trim().toLowerCase());
  // Each list has names of its own, and a shared view may be named as an own one.
  if (alike.length > 1) throw new UsageError(`${alike.length} views are named "${wanted}". Pass the id, as in -o wide`);
  const view = pickWhole(views, wanted, 'view');
  const shared = view.is_shared ? ', which everyone in the account sees' : '';
  await requireConfirmation(cli, { yes: flags.yes, message: `Delete the view "${view.name}"${shared}?` });
  await api.saved_views.delete.mutate({ saved_view_id: view.id });
  cli.print(`Deleted: ${view.name}`);
}
