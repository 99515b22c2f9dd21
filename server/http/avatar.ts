import type { Deps } from '../deps.ts';
import { AVATAR_TYPE, MAX_AVATAR_BYTES, tooManyBytes } from '../resources/users/avatar-image.ts';
import { ApiError, notFound, RequestShapeError } from '../platform/errors.ts';
import { readBytes } from './body.ts';
import type { Handler } from './edge.ts';

/** For boundaries and the headers of the parts. */
const MAX_FRAME_BYTES = 64 * 1024;
const FORM_TYPE = /^multipart\/form-data\s*;/i;
const AVATAR_ID = /^[0-9a-f]{32}$/;

/**
 * The parts of a form by name: text or a File, a list for a name that comes more than once. What is no form has none.
 * @throws ApiError 400 `image_too_large`, before more than the allowed size is read; RequestShapeError when the form
 * cannot be read.
 */
export async function readForm(request: Request): Promise<Record<string, unknown>> {
  const type = request.headers.get('content-type') ?? '';
  const bytes = await readBytes(request, MAX_AVATAR_BYTES + MAX_FRAME_BYTES).catch((error: unknown) => {
    throw error instanceof ApiError ? tooManyBytes() : error;
  });
  if (!FORM_TYPE.test(type) || bytes.byteLength === 0) return {};
  const form = await new Response(bytes, { headers: { 'content-type': type } }).formData().catch(() => {
    throw new RequestShapeError([{ loc: ['body'], msg: 'The form cannot be parsed', type: 'value_error' }]);
  });
  const names = [...new Set(form.keys())];
  return Object.fromEntries(
    names.map((name) => {
      const parts = form.getAll(name);
      return [name, parts.length === 1 ? parts[0] : parts];
    }),
  );
}

/** GET of a picture. Every upload gets a new URL, so responses can be cached forever. */
export const avatarPicture =
  ({ objects }: Deps): Handler =>
  async ({ params: [id = ''] }) => {
    const stored = AVATAR_ID.test(id) ? await objects.get(`avatars/${id}.webp`) : null;
    if (!stored) throw notFound('Avatar');
    return new Response(stored, {
      headers: {
        'content-type': AVATAR_TYPE,
        'cache-control': 'public, max-age=31536000, immutable',
        'content-disposition': 'inline',
      },
    });
  };
