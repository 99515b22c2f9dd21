import { ConfigurationError, DataError } from '../../../../contract/errors.ts';
import { byteSource } from '../../archives/byte-source.ts';
import { openZip, type ZipArchive } from '../../archives/zip.ts';
import type { SourceContext } from '../../settings/files.ts';
import type { FoundFile } from '../../stores/store.ts';
import { localNames, utf8Pieces, xmlEvents, type XmlHandlers, XmlSyntaxError } from '../../../xml/events.ts';
import { type NumberStyle, numberStyle } from './date-styles.ts';
import { SharedStrings } from './shared-strings.ts';

/** One sheet of an open workbook. The caller closes it. */
export interface OpenSheet {
  /** The file and the sheet, for messages. */
  place: string;
  texts: SharedStrings;
  /** By the number in the attribute `s` of a cell. */
  styles: NumberStyle[];
  from1904: boolean;
  /** Parses the sheet, and yields after each piece. */
  parse(handlers: XmlHandlers): AsyncGenerator<void>;
  close(): Promise<void>;
}

/** @throws DataError `malformed_xlsx`, ConfigurationError `sheet_not_found` */
export async function openSheet(ctx: SourceContext, file: FoundFile): Promise<OpenSheet> {
  const zip = await openZip(file.name, await byteSource(file, ctx.filesRoot)).catch((error: unknown) => {
    const isZip = !(error instanceof DataError && error.code === 'invalid_zip');
    throw isZip ? error : notXlsx(file, 'it is cut off, protected by a password or of an older format', error);
  });
  try {
    const parts = new Parts(zip, file, ctx.signal);
    const root = await parts.workbookPath();
    const { sheets, from1904 } = await parts.sheets(root);
    const wanted = selected(file, sheets, ctx.config.sheet);
    const targets = await parts.relations(root);
    const path = targets.get(wanted.id)?.path ?? '';
    const place = `${file.name}, sheet "${wanted.name}"`;
    const related = (kind: string) => [...targets.values()].find(({ type }) => type.endsWith(`/${kind}`))?.path;
    return {
      place,
      texts: await parts.texts(related('sharedStrings'), place),
      styles: await parts.styles(related('styles')),
      from1904,
      parse: (handlers) => parts.parse(path, handlers),
      close: () => zip.close(),
    };
  } catch (error) {
    await zip.close();
    throw error;
  }
}

interface Sheet {
  name: string;
  id: string;
}

function selected(file: FoundFile, sheets: Sheet[], wanted: string | undefined): Sheet {
  const byNumber = /^\d+$/.test(wanted ?? '1') ? sheets[Number(wanted ?? 1) - 1] : undefined;
  const found = sheets.find(({ name }) => name === wanted) ?? byNumber;
  if (found) return found;
  const names = sheets.map(({ name }) => `"${name}"`).join(', ');
  throw new ConfigurationError('sheet_not_found', `${file.name} has no sheet "${wanted ?? 1}". Its sheets: ${names}`);
}

const notXlsx = (file: FoundFile, why: string, cause?: unknown) =>
  new DataError('malformed_xlsx', `${file.name} is not a valid XLSX file: ${why}`, { cause });

/** The documents of a workbook. */
class Parts {
  constructor(
    private readonly zip: ZipArchive,
    private readonly file: FoundFile,
    private readonly signal: AbortSignal,
  ) {}

  async *parse(path: string, handlers: XmlHandlers): AsyncGenerator<void> {
    const member = this.zip.members.find(({ name }) => name === path);
    if (!member) throw notXlsx(this.file, `"${path}" is missing`);
    try {
      yield* xmlEvents(utf8Pieces(this.zip.read(member, this.signal)), localNames(handlers));
    } catch (error) {
      if (!(error instanceof XmlSyntaxError || error instanceof TypeError)) throw error;
      throw notXlsx(this.file, `"${path}": ${error.message}`, error);
    }
  }

  async workbookPath(): Promise<string> {
    const targets = await this.relations('');
    const found = [...targets.values()].find(({ type }) => type.endsWith('/officeDocument'));
    if (!found) throw notXlsx(this.file, 'it has no workbook');
    return found.path;
  }

  /** Of a part, by id. Empty if it has none. */
  async relations(part: string): Promise<Map<string, { type: string; path: string }>> {
    const at = part.lastIndexOf('/') + 1;
    const found = new Map<string, { type: string; path: string }>();
    await this.#all(`${part.slice(0, at)}_rels/${part.slice(at)}.rels`, {
      open(name, { Id = '', Type = '', Target = '' }) {
        if (name !== 'Relationship') return;
        const path = new URL(Target, `file:///${part}`).pathname.slice(1);
        found.set(Id, { type: Type, path: decodeURIComponent(path) });
      },
    });
    return found;
  }

  async sheets(root: string): Promise<{ sheets: Sheet[]; from1904: boolean }> {
    const sheets: Sheet[] = [];
    let from1904 = false;
    await this.#all(root, {
      open(name, attributes) {
        if (name === 'sheet') {
          const id = Object.entries(attributes).find(([key]) => /(^|:)id$/.test(key))?.[1] ?? '';
          sheets.push({ name: attributes.name ?? '', id });
        }
        if (name === 'workbookPr') from1904 = /^(1|true)$/.test(attributes.date1904 ?? '');
      },
    });
    return { sheets, from1904 };
  }

  async texts(path: string | undefined, place: string): Promise<SharedStrings> {
    const texts = new SharedStrings(place);
    let text = '';
    let inside: string[] = [];
    if (path === undefined) return texts;
    await this.#all(path, {
      open(name) {
        inside.push(name);
        if (name === 'si') text = '';
      },
      text(piece) {
        // `rPh` holds how a text is pronounced.
        if (inside.at(-1) === 't' && !inside.includes('rPh')) text += piece;
      },
      close(name) {
        inside = inside.slice(0, -1);
        if (name === 'si') texts.add(text);
      },
    });
    return texts;
  }

  async styles(path: string | undefined): Promise<NumberStyle[]> {
    const codes = new Map<number, string>();
    const styles: NumberStyle[] = [];
    let inCells = false;
    if (path === undefined) return styles;
    await this.#all(path, {
      open(name, { numFmtId = '0', formatCode = '' }) {
        if (name === 'numFmt') codes.set(Number(numFmtId), formatCode);
        if (name === 'cellXfs') inCells = true;
        if (name === 'xf' && inCells) styles.push(numberStyle(Number(numFmtId), codes.get(Number(numFmtId))));
      },
      close(name) {
        if (name === 'cellXfs') inCells = false;
      },
    });
    return styles;
  }

  async #all(path: string, handlers: XmlHandlers): Promise<void> {
    for await (const _ of this.parse(path, handlers)) this.signal.throwIfAborted();
  }
}
