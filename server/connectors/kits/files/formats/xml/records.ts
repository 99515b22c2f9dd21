import { DataError } from '../../../../contract/errors.ts';
import type { SourceContext } from '../../settings/files.ts';
import type { FoundFile } from '../../stores/store.ts';
import { localName, xmlEvents, type XmlHandlers, type XmlPosition, XmlSyntaxError } from '../../../xml/events.ts';
import { TEXT, type XmlParts, XmlTree, type XmlValue } from '../../../xml/tree.ts';
import { documentText } from './document-text.ts';

/** One row: the attributes and the elements of a record element by name. */
export interface XmlRecord {
  parts: XmlParts;
  /** Where the element begins, counted from 1. */
  line: number;
}

export interface RecordGroup {
  records: XmlRecord[];
  /** Size of the text since the group before. */
  bytes: number;
}

const MAX_RECORD_LENGTH = 64 << 20;
const NO_ATTRIBUTES = {};

/** `catalog/book`, with or without a slash before it, to its names. */
export const stepsOf = (path: string) => path.replace(/^\//, '').split('/');

/** A step without a prefix matches any. */
const matches = (step: string, name: string) => step === name || step === localName(name);

/** The records of a document, and where it led instead if there are none. */
export class RecordReader {
  /** The longest part of the path that the document has. */
  reached = 0;
  /** Names of the elements there, some of them. */
  readonly siblings = new Set<string>();
  #records: XmlRecord[] = [];
  #depth = 0;
  #matched = 0;
  #tree: XmlTree | null = null;
  #prefix = '';
  #from: XmlPosition = { line: 0, position: 0 };

  constructor(
    private readonly file: FoundFile,
    private readonly path: string[],
  ) {}

  /** @throws DataError `malformed_xml`, `record_too_long` */
  async *groups(ctx: SourceContext): AsyncGenerator<RecordGroup> {
    let bytes = 0;
    const read = { length: 0 };
    for await (const _ of documentEvents(ctx, this.file, this.handlers, read)) {
      this.#checkLength(read.length);
      if (this.#records.length === 0) continue;
      yield { records: this.#records, bytes: read.length - bytes };
      bytes = read.length;
      this.#records = [];
    }
  }

  readonly handlers: XmlHandlers = {
    open: (name, attributes, at) => {
      this.#depth += 1;
      if (this.#tree) return this.#tree.open(this.#bare(name), this.#data(attributes));
      if (this.#matched < this.#depth - 1) return;
      if (this.#matched === this.reached && this.siblings.size < 10) this.siblings.add(localName(name));
      if (!matches(this.path[this.#matched]!, name)) return;
      this.#matched += 1;
      if (this.#matched > this.reached) {
        this.reached = this.#matched;
        this.siblings.clear();
      }
      if (this.#matched === this.path.length) this.#begin(name, attributes, at);
    },
    text: (piece) => this.#tree?.text(piece),
    close: () => {
      this.#depth -= 1;
      this.#matched = Math.min(this.#matched, this.#depth);
      const closed = this.#tree?.close();
      if (!closed) return;
      this.#tree = null;
      this.#records.push({ parts: partsOf(closed.value), line: this.#from.line });
    },
  };

  #begin(name: string, attributes: Record<string, string>, { line, position }: XmlPosition): void {
    this.#tree = new XmlTree();
    this.#from = { line, position };
    this.#prefix = name.slice(0, name.indexOf(':') + 1);
    this.#tree.open(name, this.#data(attributes));
  }

  /** The prefix of the record element stands for its own namespace: files can differ in it. */
  #bare = (name: string) =>
    this.#prefix !== '' && name.startsWith(this.#prefix) ? name.slice(this.#prefix.length) : name;

  /** Without what describes the document: `xsi:nil` belongs to an element that is empty anyway. */
  #data(attributes: Record<string, string>): Record<string, string> {
    let data: Record<string, string> = NO_ATTRIBUTES;
    for (const name in attributes) {
      if (name === 'xmlns' || name.startsWith('xmlns:') || name.startsWith('xsi:')) continue;
      if (data === NO_ATTRIBUTES) data = Object.create(null) as Record<string, string>;
      data[this.#bare(name)] = attributes[name]!;
    }
    return data;
  }

  #checkLength(length: number): void {
    if (!this.#tree || length - this.#from.position <= MAX_RECORD_LENGTH) return;
    const place = `${this.file.name}, line ${this.#from.line}`;
    throw new DataError('record_too_long', `${place}: a record is longer than ${MAX_RECORD_LENGTH >> 20} MB`);
  }
}

const partsOf = (value: XmlValue): XmlParts =>
  typeof value === 'string' ? { [TEXT]: value } : value === null ? {} : value;

/** Parses the document of a file. @param read counts its characters. @throws DataError `malformed_xml` */
export async function* documentEvents(
  ctx: SourceContext,
  file: FoundFile,
  handlers: XmlHandlers,
  read = { length: 0 },
): AsyncGenerator<void> {
  async function* counted() {
    for await (const piece of documentText(ctx, file)) {
      ctx.signal.throwIfAborted();
      read.length += piece.length;
      yield piece;
    }
  }
  try {
    yield* xmlEvents(counted(), handlers);
  } catch (error) {
    if (!(error instanceof XmlSyntaxError)) throw error;
    throw new DataError('malformed_xml', `${file.name}, ${error.message}`, { cause: error });
  }
}
