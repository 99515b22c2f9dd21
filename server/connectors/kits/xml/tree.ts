import { xmlParser } from './events.ts';

/** The value of an element: text, null if it is empty, or its parts by name. */
export type XmlValue = string | null | XmlParts;
export interface XmlParts {
  [name: string]: XmlValue | XmlValue[];
}

interface OpenElement {
  name: string;
  parts: XmlParts | null;
  text: string;
}

/** Text beside attributes or elements. */
export const TEXT = '#text';

/**
 * Builds the value of an element: attributes as `@name`, text beside them as `#text`, repeated elements as a list, and an
 * empty element as null. Spaces around texts are removed. Every other value is text.
 */
export class XmlTree {
  #open: OpenElement[] = [];

  open(name: string, attributes: Record<string, string>): void {
    let parts: XmlParts | null = null;
    for (const attribute in attributes) parts = withPart(parts, `@${attribute}`, attributes[attribute]!);
    this.#open.push({ name, parts, text: '' });
  }

  text(piece: string): void {
    const element = this.#open.at(-1);
    if (element) element.text += piece;
  }

  /** @returns the value of the outermost element, once it is closed */
  close(): { name: string; value: XmlValue } | null {
    const { name, parts, text } = this.#open.pop()!;
    const trimmed = text.trim();
    const value = parts === null ? trimmed || null : trimmed === '' ? parts : withPart(parts, TEXT, trimmed);
    const outer = this.#open.at(-1);
    if (!outer) return { name, value };
    outer.parts = withPart(outer.parts, name, value);
    return null;
  }
}

function withPart(parts: XmlParts | null, name: string, value: XmlValue): XmlParts {
  const all = parts ?? {};
  if (!Object.hasOwn(all, name)) {
    // An assignment of this name would change the prototype.
    if (name === '__proto__') Object.defineProperty(all, name, { value, enumerable: true, writable: true });
    else all[name] = value;
    return all;
  }
  const known = all[name]!;
  if (Array.isArray(known)) known.push(value);
  else all[name] = [known, value];
  return all;
}

/** The values of a whole document. @throws XmlSyntaxError */
export function parseXml(text: string): XmlParts {
  const tree = new XmlTree();
  const values: XmlParts = {};
  const parser = xmlParser({
    open: (name, attributes) => tree.open(name, attributes),
    text: (piece) => tree.text(piece),
    close() {
      const root = tree.close();
      if (root) values[root.name] = root.value;
    },
  });
  parser.write(text);
  parser.end();
  return values;
}
