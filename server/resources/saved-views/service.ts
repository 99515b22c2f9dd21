import { and, asc, eq, or, sql } from 'drizzle-orm';
import { type SavedViewRow, savedViews, users } from '../../../db/schema/index.ts';
import { changedColumns } from '../../api/changed-columns.ts';
import { refuseDuplicateName } from '../../api/duplicate-name.ts';
import type { Permission } from '../../api/permissions.ts';
import { type Ctx, requirePermission } from '../../api/procedure.ts';
import { isId } from '../../api/wire-types.ts';
import { badRequest, notFound } from '../../platform/errors.ts';
import { isFull } from '../access/row-limit.ts';
import type { CreateSavedViewRequest, SavedView, SavedViewQuery, UpdateSavedViewRequest } from './schema.ts';

/** Shared views are what a whole account sees, as connections are. */
const SHARING: Permission = 'connections.update';
/** Of each user, and of an account's shared ones. */
const MAX_VIEWS = 100;

const creator = { id: users.id, name: users.full_name, email: users.email };

const select = (ctx: Ctx) =>
  ctx.db
    .select({ view: savedViews, created_by: creator })
    .from(savedViews)
    .innerJoin(users, eq(users.id, savedViews.created_by));

const visible = ({ principal }: Ctx) =>
  and(
    eq(savedViews.account_id, principal.account_id),
    or(savedViews.is_shared, eq(savedViews.created_by, principal.user_id)),
  );

/** The caller's own views, then the shared ones, each by name. */
export async function listSavedViews(ctx: Ctx, { page }: SavedViewQuery): Promise<SavedView[]> {
  const records = await select(ctx)
    .where(and(visible(ctx), page && eq(savedViews.page, page)))
    .orderBy(asc(savedViews.is_shared), asc(sql`lower(${savedViews.name}) collate "C"`), asc(savedViews.id));
  return records.map(present);
}

/** @throws ApiError 400 `duplicate_name`, `too_many_views`; 403 for a shared view. */
export async function createSavedView(ctx: Ctx, input: CreateSavedViewRequest): Promise<SavedView> {
  const { page, name, query, is_shared } = input;
  if (is_shared) requirePermission(ctx, SHARING);
  await requireRoom(ctx, is_shared);
  const { account_id, user_id } = ctx.principal;
  const inserting = ctx.db
    .insert(savedViews)
    .values({ account_id, created_by: user_id, page, name, query, is_shared })
    .returning();
  const [view] = await refuseDuplicateName('view', inserting);
  if (!view) throw new Error('the insert returned no row');
  return getView(ctx, view.id);
}

/**
 * Changes a view. A request that changes nothing leaves its time stamp alone.
 * @throws ApiError 404; 403 for a shared view; 400 `duplicate_name`, `too_many_views`, `view_of_another_user`.
 */
export async function updateSavedView(
  ctx: Ctx,
  input: UpdateSavedViewRequest & { saved_view_id: string },
): Promise<SavedView> {
  const view = await lockView(ctx, input.saved_view_id);
  const { name, query, is_shared } = input;
  if (view.is_shared || is_shared) requirePermission(ctx, SHARING);
  const changes = changedColumns(view, { name, query, is_shared });
  if (changes.is_shared !== undefined) {
    if (view.created_by !== ctx.principal.user_id) throw ofAnotherUser();
    await requireRoom(ctx, changes.is_shared);
  }
  if (Object.keys(changes).length > 0) {
    await refuseDuplicateName('view', ctx.db.update(savedViews).set(changes).where(eq(savedViews.id, view.id)));
  }
  return getView(ctx, view.id);
}

/** @throws ApiError 404; 403 for a shared view. */
export async function deleteSavedView(ctx: Ctx, { saved_view_id }: { saved_view_id: string }): Promise<void> {
  const view = await lockView(ctx, saved_view_id);
  if (view.is_shared) requirePermission(ctx, SHARING);
  await ctx.db.delete(savedViews).where(eq(savedViews.id, view.id));
}

const ofAnotherUser = () =>
  badRequest('view_of_another_user', 'Only the user who created a view can stop sharing it. You can delete it', {
    field: 'is_shared',
  });

async function getView(ctx: Ctx, id: string): Promise<SavedView> {
  const [record] = await select(ctx).where(eq(savedViews.id, id));
  if (!record) throw new Error(`the view ${id} does not exist`);
  return present(record);
}

async function lockView(ctx: Ctx, id: string): Promise<SavedViewRow> {
  const own = and(eq(savedViews.id, id), visible(ctx));
  const [view] = isId(id) ? await ctx.db.select().from(savedViews).where(own).for('no key update') : [];
  if (!view) throw notFound('View');
  return view;
}

/** Before one more view is created or changes sides. */
async function requireRoom(ctx: Ctx, is_shared: boolean): Promise<void> {
  const { account_id, user_id } = ctx.principal;
  const owned = is_shared ? eq(savedViews.account_id, account_id) : eq(savedViews.created_by, user_id);
  const where = and(owned, eq(savedViews.is_shared, is_shared));
  if (!(await isFull(ctx.db, account_id, { table: savedViews, where, limit: MAX_VIEWS }))) return;
  const whose = is_shared ? 'The account has' : 'You have';
  throw badRequest('too_many_views', `${whose} ${MAX_VIEWS} ${is_shared ? 'shared ' : ''}views. Delete one first`, {
    limit: MAX_VIEWS,
  });
}

function present({ view, created_by }: Awaited<ReturnType<typeof select>>[number]): SavedView {
  const { account_id: _account, ...shown } = view;
  return { ...shown, created_by };
}
