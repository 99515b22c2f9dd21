import { z } from 'zod';
import { instant, whole } from '../../api/wire-types.ts';

export const AvatarForm = z
  .strictObject({ file: z.file().meta({ description: 'PNG, JPEG or WebP, at most 2 MiB.' }) })
  .meta({ id: 'Body_upload_avatar_users_me_avatar_post', examples: [{ file: 'portrait.png' }] });

export const AvatarUploadResponse = z
  .object({
    avatar_url: z.string().meta({ description: 'Path on this server. Changes with each upload.' }),
    width: whole(),
    height: whole(),
    content_type: z.literal('image/webp'),
    size_bytes: whole(),
    updated_at: instant(),
  })
  .meta({ id: 'AvatarUploadResponse' });
export type AvatarUploadResponse = z.infer<typeof AvatarUploadResponse>;
