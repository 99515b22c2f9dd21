import { csvRecords, jsonLines, linesOf, xmlOf } from '../../kits/rest/bodies/bodies.ts';
import { parseResponse } from '../../kits/rest/records.ts';
import type { HttpResponse } from '../../kits/rest/send.ts';
import { DataError } from '../../contract/errors.ts';
import type { Decoder } from '../components/request-components.ts';

export interface Decoded {
  /** The extractor looks into them one after the other. */
  bodies: unknown[];
  /** What templates see as the response. */
  response: unknown;
}

/** Decodes a response. Gzip is already unpacked: it is detected by its first bytes. @throws DataError naming the line */
export function decode(decoder: Decoder | null | undefined, stream: string, http: HttpResponse): Decoded {
  const place = `${stream}: the response of ${http.url.host}${http.url.pathname}`;
  if (decoder?.type === 'ZipfileDecoder') return decodeArchive(decoder.decoder, stream, http);
  if (http.files && http.files.length > 1)
    throw new DataError('several_files', `${place} is an archive of ${http.files.length} files`);
  switch (decoder?.type) {
    case 'GzipDecoder':
      return decode(decoder.decoder, stream, http);
    case 'JsonlDecoder':
      return { bodies: jsonLines(http.text, place), response: {} };
    case 'IterableDecoder':
      return { bodies: linesOf(http.text).map((record) => ({ record })), response: {} };
    case 'XmlDecoder': {
      const xml = http.text.trim() === '' ? {} : xmlOf(http.text, place);
      return { bodies: [xml], response: xml };
    }
    case 'CsvDecoder':
      return {
        bodies: csvRecords({ delimiter: decoder.delimiter, none: decoder.set_values_to_none }, http.text, place),
        response: {},
      };
    default: {
      const json = parseResponse(stream, http);
      const bodies = Array.isArray(json) ? json : [json];
      return { bodies, response: bodies[0] ?? {} };
    }
  }
}

/** The files of an archive, one after the other. */
function decodeArchive(decoder: Decoder, stream: string, http: HttpResponse): Decoded {
  if (!http.files)
    throw new DataError('malformed_zip', `${stream}: the response of ${http.url.host} is not a ZIP archive`);
  const { files: _, ...rest } = http;
  const parts = http.files.map((text) => decode(decoder, stream, { ...rest, text }));
  return { bodies: parts.flatMap(({ bodies }) => bodies), response: parts[0]?.response ?? {} };
}
