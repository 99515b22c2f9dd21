import { XMLParser, XMLValidator } from 'fast-xml-parser';

const parser = new XMLParser({
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  textNodeName: '#text',
  parseTagValue: false,
  parseAttributeValue: false,
  ignoreDeclaration: true,
  ignorePiTags: true,
  trimValues: true,
  // Numbers of characters, such as &#65;.
  htmlEntities: true,
});

/**
 * The values of an XML document: attributes as `@name`, text beside them as `#text`, repeated elements as a list, and an
 * empty element as null. Every other value is text.
 * @throws Error with the line of what is not well-formed
 */
export function parseXml(text: string): unknown {
  if (text.includes('<!ENTITY')) throw new Error('entities of a document type are not supported');
  const checked = XMLValidator.validate(text);
  if (checked !== true) throw new Error(`line ${checked.err.line}: ${checked.err.msg}`);
  return withNulls(parser.parse(text));
}

function withNulls(value: unknown): unknown {
  if (value === '') return null;
  if (Array.isArray(value)) return value.map(withNulls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [name, name.startsWith('@') ? part : withNulls(part)]),
  );
}
