import { randomBytes } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { users } from '../../../db/schema/index.ts';
import type { Deps } from '../../deps.ts';
import { AVATAR_PIXELS, AVATAR_TYPE, MAX_AVATAR_BYTES, toAvatar, tooManyBytes } from './avatar-image.ts';
import type { Ctx } from '../../api/procedure.ts';
import { lockUser } from '../access/user.ts';
import type { AvatarUploadResponse } from './avatar-schema.ts';
import { emitUserEvent } from './events.ts';
import { avatarUrl } from './query.ts';

/**
 * Sets the caller's picture. Its URL is unguessable, since `<img>` cannot send a key, and unique, so that it can be
 * cached forever.
 * @throws ApiError 400 `unsupported_image`, `image_too_large`.
 */
export async function uploadAvatar(ctx: Ctx, { file }: { file: File }): Promise<AvatarUploadResponse> {
  if (file.size > MAX_AVATAR_BYTES) throw tooManyBytes();
  const picture = await toAvatar(await file.bytes());
  const avatar_key = `avatars/${randomBytes(16).toString('hex')}.webp`;
  await ctx.deps.objects.put(avatar_key, picture);
  const { former, updated_at } = await ctx.db.transaction((db) => replaceAvatar({ ...ctx, db }, avatar_key));
  if (former !== null) await deletePicture(ctx.deps, former);
  return {
    avatar_url: avatarUrl(ctx, avatar_key),
    width: AVATAR_PIXELS,
    height: AVATAR_PIXELS,
    content_type: AVATAR_TYPE,
    size_bytes: picture.byteLength,
    updated_at,
  };
}

async function replaceAvatar(ctx: Ctx, avatar_key: string): Promise<{ former: string | null; updated_at: string }> {
  const user = await lockUser(ctx, ctx.principal.user_id);
  const [changed] = await ctx.db
    .update(users)
    .set({ avatar_key, avatar_updated_at: sql`now()` })
    .where(eq(users.id, user.id))
    .returning();
  if (!changed?.avatar_updated_at) throw new Error('the locked row no longer exists');
  await emitUserEvent(ctx, 'user_updated', { user: changed, changed_fields: ['avatar_url'] });
  return { former: user.avatar_key, updated_at: changed.avatar_updated_at };
}

/** Deletes an unused picture. A failure is logged only: a leftover file is harmless. */
export async function deletePicture({ objects, log }: Deps, avatar_key: string): Promise<void> {
  await objects
    .delete(avatar_key)
    .catch((error: unknown) => log.warn({ err: error, avatar_key }, 'deleting the unused picture failed'));
}
