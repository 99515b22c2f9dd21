import { SaxesParser } from 'saxes';

/** Where the parser stands. */
export interface XmlPosition {
  /** Counted from 1. */
  readonly line: number;
  /** Characters before it. */
  readonly position: number;
}

/** What to do with the parts of a document. Names come as they are written, with their prefix. */
export interface XmlHandlers {
  open?(name: string, attributes: Record<string, string>, at: XmlPosition): void;
  text?(text: string): void;
  close?(name: string): void;
}

/** A document that is not well-formed XML, or too complex. The message names line and column. */
export class XmlSyntaxError extends Error {}

export interface XmlParser extends XmlPosition {
  /** @throws XmlSyntaxError */
  write(piece: string): void;
  /** Ends the document. @throws XmlSyntaxError if it is not whole */
  end(): void;
}

/** The parser keeps a text, tag or comment until its end, and all elements that are open. */
const MAX_PART_LENGTH = 64 << 20;
const MAX_DEPTH = 1_000;

/** The name without its prefix. */
export const localName = (name: string) => name.slice(name.indexOf(':') + 1);

/** Gives handlers the names without their prefix. */
export const localNames = ({ open, text, close }: XmlHandlers): XmlHandlers => ({
  ...(open && { open: (name, attributes, at) => open(localName(name), attributes, at) }),
  ...(text && { text }),
  ...(close && { close: (name) => close(localName(name)) }),
});

/** Parses a document piece by piece. Its own entities are refused: they could grow without limit, or name other files. */
export function xmlParser({ open, text, close }: XmlHandlers): XmlParser {
  const parser = new SaxesParser({ xmlns: false });
  let depth = 0;
  let ended = 0;
  const fail = (reason: string): never => {
    throw new XmlSyntaxError(`line ${parser.line}, column ${parser.column + 1}: ${reason}`);
  };
  const partEnds = () => {
    ended = parser.position;
  };
  parser.on('opentag', ({ name, attributes }) => {
    partEnds();
    if (++depth > MAX_DEPTH) fail(`more than ${MAX_DEPTH} elements are nested`);
    open?.(name, attributes, parser);
  });
  parser.on('closetag', ({ name }) => {
    partEnds();
    depth -= 1;
    close?.(name);
  });
  parser.on('cdata', (piece) => {
    partEnds();
    text?.(piece);
  });
  if (text) parser.on('text', text);
  parser.on('comment', partEnds);
  parser.on('doctype', (type) => {
    if (type.includes('<!ENTITY')) fail('entities of a document type are not supported');
  });
  // Its message begins with line and column.
  parser.on('error', ({ message }) => fail(message.replace(/^[\d:]+ |\.$/g, '')));
  return {
    get line() {
      return parser.line;
    },
    get position() {
      return parser.position;
    },
    write(piece) {
      parser.write(piece);
      if (parser.position - ended > MAX_PART_LENGTH) {
        fail(`a text, tag or comment is longer than ${MAX_PART_LENGTH >> 20} MB`);
      }
    },
    end: () => void parser.close(),
  };
}

/**
 * Parses a document as it arrives, and yields after each piece, so that its caller can take what the handlers have
 * collected.
 * @throws XmlSyntaxError
 */
export async function* xmlEvents(pieces: AsyncIterable<string>, handlers: XmlHandlers): AsyncGenerator<void> {
  const parser = xmlParser(handlers);
  for await (const piece of pieces) {
    parser.write(piece);
    yield;
  }
  parser.end();
  yield;
}

/** @throws TypeError if the bytes are not UTF-8 */
export async function* utf8Pieces(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const chunk of bytes) yield decoder.decode(chunk, { stream: true });
  yield decoder.decode();
}
