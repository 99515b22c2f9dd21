import { TypeInference } from '../../../../cells/normalizers.ts';
import type { FileColumn } from '../format.ts';
import { TEXT, type XmlParts, type XmlValue } from '../../../xml/tree.ts';

/** How the values of an element are written as JSON, wherever they would not be text: alike in all rows. */
export interface XmlLayout {
  /** The element repeats: its values are always a list. */
  list?: true;
  /** The element has attributes or elements: its values are always an object. With those that are not text. */
  parts?: Record<string, XmlLayout>;
}

/** What `FileColumn.layout` holds. */
interface ColumnLayout extends XmlLayout {
  /** Path of the record element. */
  record: string;
}

export const layoutOf = ({ layout }: FileColumn): ColumnLayout | null =>
  layout === undefined ? null : (JSON.parse(layout) as ColumnLayout);

/** Learns the layout and the type of a column from its values. */
export class ColumnSample {
  #types = new TypeInference();

  constructor(private readonly layout: XmlLayout = {}) {}

  add(value: XmlValue | XmlValue[]): void {
    learn(this.layout, value);
    if (typeof value === 'string') this.#types.add(value);
  }

  column(name: string, record: string): FileColumn {
    const { list, parts } = this.layout;
    const type = list ? 'array' : parts ? 'json' : this.#types.result();
    const layout = JSON.stringify({ record, ...this.layout } satisfies ColumnLayout);
    return { name, type, source_type: null, dialect: null, nullable: true, layout };
  }
}

function learn(layout: XmlLayout, value: XmlValue | XmlValue[]): void {
  if (Array.isArray(value)) {
    layout.list = true;
    for (const one of value) learn(layout, one);
  } else if (typeof value === 'object' && value !== null) {
    const parts = (layout.parts ??= Object.create(null) as Record<string, XmlLayout>);
    for (const name in value) {
      const known = parts[name] ?? {};
      learn(known, value[name]!);
      if (known.list || known.parts) parts[name] = known;
    }
  }
}

/** The value in its layout. `beyond` is called for structure that the layout does not have. */
export function arranged(value: XmlValue | XmlValue[], layout: XmlLayout, beyond: () => void): XmlValue | XmlValue[] {
  if (!layout.list) {
    if (!Array.isArray(value)) return arrangedOne(value, layout, beyond);
    beyond();
    return value.map((one) => arrangedOne(one, layout, beyond));
  }
  return (Array.isArray(value) ? value : [value]).map((one) => arrangedOne(one, layout, beyond));
}

function arrangedOne(value: XmlValue, { parts }: XmlLayout, beyond: () => void): XmlValue {
  if (value === null) return null;
  if (typeof value === 'string') return parts ? { [TEXT]: value } : value;
  if (!parts) beyond();
  const all: XmlParts = {};
  for (const name in value) all[name] = arranged(value[name]!, parts?.[name] ?? {}, beyond);
  return all;
}
