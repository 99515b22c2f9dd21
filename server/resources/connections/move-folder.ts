import { and, asc, eq, inArray, or, type SQL, sql } from 'drizzle-orm';
import { z } from 'zod';
import { connections } from '../../../db/schema/index.ts';
import { emitMoved } from '../../events/connection-events.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { whole } from '../../api/wire-types.ts';
import { MAX_FOLDER_LEVELS } from '../../pipeline/folders.ts';
import { badRequest, notFound } from '../../platform/errors.ts';
import { ofAccount } from './query.ts';
import { folder } from './schema.ts';

export const MoveFolderRequest = z
  .strictObject({
    from: folder(),
    to: folder().nullable().meta({ description: 'Null: the folder is removed, and its connections stay.' }),
  })
  .meta({ id: 'MoveFolderRequest', examples: [{ from: 'Finance', to: 'Accounting' }] });
export type MoveFolderRequest = z.infer<typeof MoveFolderRequest>;

export const MovedFolder = z
  .object({ connections: whole().meta({ description: 'How many connections moved.' }) })
  .meta({ id: 'MovedFolder' });
export type MovedFolder = z.infer<typeof MovedFolder>;

/** Connections in a folder or below it. */
export const inFolder = (path: string): SQL =>
  or(eq(connections.folder, path), sql`starts_with(${connections.folder}, ${`${path}/`})`)!;

const CHECK_VIOLATION = '23514';

/** Moves all connections of a folder together. @throws ApiError 404 without any; 400 `folder_too_deep`. */
export async function moveFolder(ctx: Ctx, { from, to }: MoveFolderRequest): Promise<MovedFolder> {
  const former = await ctx.db
    .select({ id: connections.id, folder: connections.folder })
    .from(connections)
    .where(and(ofAccount(ctx.principal.account_id), inFolder(from)))
    .orderBy(asc(connections.id))
    .for('no key update');
  if (former.length === 0) throw notFound('Folder');
  if (from === to) return { connections: former.length };
  const ids = former.map(({ id }) => id);
  const below = sql`nullif(substr(${connections.folder}, char_length(${from}::text) + 2), '')`;
  const moving = ctx.db
    .update(connections)
    .set({
      folder: sql`nullif(concat_ws('/', ${to}::text, ${below}), '')`,
      revision: sql`${connections.revision} + 1`,
      updated_by: ctx.principal.user_id,
    })
    .where(inArray(connections.id, ids))
    .returning();
  const moved = await moving.catch((error: unknown) => {
    throw isTooDeep(error) ? tooDeep() : error;
  });
  const cause = { db: ctx.db, actor: actorOf(ctx.principal) };
  await emitMoved(cause, { moved, before: new Map(former.map(({ id, folder: path }) => [id, path])) });
  return { connections: moved.length };
}

/** The driver's error is the cause of the one that the query builder throws. */
const isTooDeep = (error: unknown): boolean =>
  error instanceof Error && (error.cause as { code?: unknown } | undefined)?.code === CHECK_VIOLATION;

const tooDeep = () =>
  badRequest(
    'folder_too_deep',
    `A folder has at most ${MAX_FOLDER_LEVELS} levels and 200 characters. Move the folders below it first`,
    { field: 'to' },
  );
