import { badRequest } from '../../platform/errors.ts';

export const MAX_AVATAR_BYTES = 2 * 1024 * 1024;
export const AVATAR_PIXELS = 256;
export const AVATAR_TYPE = 'image/webp';
const MAX_PIXELS = 4096 * 4096;
const DECODE_SECONDS = 10;

/** Signatures of the accepted formats; the content type that the client sends is not trusted. */
const MAGIC: readonly ((bytes: Uint8Array) => boolean)[] = [
  (bytes) => startsWith(bytes, 0, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
  (bytes) => startsWith(bytes, 0, [0xff, 0xd8, 0xff]),
  (bytes) => startsWith(bytes, 0, [0x52, 0x49, 0x46, 0x46]) && startsWith(bytes, 8, [0x57, 0x45, 0x42, 0x50]),
];

const startsWith = (bytes: Uint8Array, at: number, magic: number[]) =>
  magic.every((byte, index) => bytes[at + index] === byte);

/**
 * The picture as a square WebP of `AVATAR_PIXELS`, cut around its centre, turned as its EXIF says, without metadata.
 * @throws ApiError 400 `unsupported_image` for anything but a complete PNG, JPEG or WebP, `image_too_large`.
 */
export async function toAvatar(bytes: Uint8Array): Promise<Uint8Array> {
  if (bytes.byteLength > MAX_AVATAR_BYTES) throw tooManyBytes();
  if (!MAGIC.some((matches) => matches(bytes))) throw unsupported();
  // Loaded on first use: most processes never need it.
  const { default: sharp } = await import('sharp');
  const { width, height } = await sharp(bytes, { limitInputPixels: false }).metadata().catch(refuse);
  if (width * height > MAX_PIXELS) throw tooManyPixels();
  return sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'truncated' })
    .timeout({ seconds: DECODE_SECONDS })
    .rotate()
    .resize(AVATAR_PIXELS, AVATAR_PIXELS, { fit: 'cover' })
    .webp()
    .toBuffer()
    .catch(refuse);
}

function refuse(): never {
  throw unsupported();
}

const unsupported = () =>
  badRequest('unsupported_image', 'The file is not a readable PNG, JPEG or WebP image', { field: 'file' });

/** Exported for callers that know the size before reading the body. */
export const tooManyBytes = () =>
  badRequest('image_too_large', `The image is larger than ${MAX_AVATAR_BYTES} bytes`, {
    field: 'file',
    limit_bytes: MAX_AVATAR_BYTES,
  });

const tooManyPixels = () =>
  badRequest('image_too_large', `The image has more than ${MAX_PIXELS} pixels`, {
    field: 'file',
    limit_pixels: MAX_PIXELS,
  });
