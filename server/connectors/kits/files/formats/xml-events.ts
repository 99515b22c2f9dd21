import { SaxesParser } from 'saxes';

/** What to do with the parts of a document. Names come without their prefix. */
export interface XmlHandlers {
  open?(name: string, attributes: Record<string, string>): void;
  text?(text: string): void;
  close?(name: string): void;
}

/** A document that is not well-formed XML. */
export class XmlSyntaxError extends Error {}

const bare = (name: string) => (name.includes(':') ? name.slice(name.indexOf(':') + 1) : name);

/**
 * Parses a document piece by piece, and yields after each piece, so that its caller can take what the handlers have
 * collected. Entities of the document itself are refused: they could grow without limit.
 * @throws XmlSyntaxError
 */
export async function* xmlEvents(pieces: AsyncIterable<string>, handlers: XmlHandlers): AsyncGenerator<void> {
  const parser = new SaxesParser({ xmlns: false });
  const { open, text, close } = handlers;
  if (open) parser.on('opentag', (tag) => open(bare(tag.name), tag.attributes));
  if (text) {
    parser.on('text', text);
    parser.on('cdata', text);
  }
  if (close) parser.on('closetag', (tag) => close(bare(tag.name)));
  parser.on('error', (error) => {
    throw new XmlSyntaxError(error.message);
  });
  for await (const piece of pieces) {
    parser.write(piece);
    yield;
  }
  parser.close();
  yield;
}

/** @throws TypeError if the bytes are not UTF-8 */
export async function* utf8Pieces(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const chunk of bytes) yield decoder.decode(chunk, { stream: true });
  yield decoder.decode();
}
