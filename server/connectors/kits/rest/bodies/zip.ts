import { inflateRawSync } from 'node:zlib';
import { ConfigurationError, DataError } from '../../../contract/errors.ts';

// PKWARE's APPNOTE 6.3.10, sections 4.3.7, 4.3.12 and 4.3.16.
const FILE = 0x04034b50;
const ENTRY = 0x02014b50;
const END = 0x06054b50;
const FILE_BYTES = 30;
const ENTRY_BYTES = 46;
const END_BYTES = 22;
const MAX_COMMENT_BYTES = 65_535;
/** Marks of ZIP64, for archives of 4 GB and more. */
const NOT_HERE = 0xffffffff;
const STORED = 0;
const DEFLATED = 8;

/** Also when it is empty. */
export const isZip = (body: Uint8Array): boolean => {
  if (body.length < END_BYTES) return false;
  const first = new DataView(body.buffer, body.byteOffset, 4).getUint32(0, true);
  return first === FILE || first === END;
};

/** The files of an archive, in its order. @throws DataError when it is damaged or encrypted */
export function unzip(body: Uint8Array, max_bytes: number): Uint8Array[] {
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  try {
    const end = endOf(view);
    const files: Uint8Array[] = [];
    let left = max_bytes;
    let at = view.getUint32(end + 16, true);
    for (let count = view.getUint16(end + 10, true); count > 0; count -= 1) {
      if (view.getUint32(at, true) !== ENTRY) throw malformed('its list of files is damaged');
      const name = body.subarray(at + ENTRY_BYTES, at + ENTRY_BYTES + view.getUint16(at + 28, true));
      // Folders are entries, too.
      if (name.at(-1) !== 0x2f) {
        const file = fileAt(body, view, at, left);
        left -= file.length;
        files.push(file);
      }
      at += ENTRY_BYTES + view.getUint16(at + 28, true) + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
    }
    return files;
  } catch (error) {
    throw error instanceof RangeError ? malformed('it ends early') : error;
  }
}

function endOf(view: DataView): number {
  const least = Math.max(0, view.byteLength - END_BYTES - MAX_COMMENT_BYTES);
  for (let at = view.byteLength - END_BYTES; at >= least; at -= 1) if (view.getUint32(at, true) === END) return at;
  throw malformed('it ends early');
}

function fileAt(body: Uint8Array, view: DataView, entry: number, left: number): Uint8Array {
  const method = view.getUint16(entry + 10, true);
  const packed = view.getUint32(entry + 20, true);
  const size = view.getUint32(entry + 24, true);
  const offset = view.getUint32(entry + 42, true);
  if ((view.getUint16(entry + 8, true) & 1) !== 0) throw malformed('it is encrypted');
  if (packed === NOT_HERE || size === NOT_HERE || offset === NOT_HERE) throw malformed('it has the form of ZIP64');
  if (size > left)
    throw new ConfigurationError('page_too_large', 'The files of a response are too large. Request less.');
  if (view.getUint32(offset, true) !== FILE) throw malformed('a file is missing');
  const start = offset + FILE_BYTES + view.getUint16(offset + 26, true) + view.getUint16(offset + 28, true);
  if (start + packed > body.length) throw malformed('it ends early');
  const file = inflated(body.subarray(start, start + packed), method, size);
  if (file.length !== size || Bun.hash.crc32(file) !== view.getUint32(entry + 16, true))
    throw malformed('a file is damaged');
  return file;
}

function inflated(packed: Uint8Array, method: number, size: number): Uint8Array {
  if (method === STORED) return packed;
  if (method !== DEFLATED) throw malformed(`its compression method ${method} is not supported`);
  if (size === 0) return new Uint8Array();
  try {
    return inflateRawSync(packed, { maxOutputLength: size });
  } catch {
    throw malformed('a file is damaged');
  }
}

const malformed = (why: string) =>
  new DataError('malformed_zip', `A response is not a ZIP archive that can be read: ${why}`);
