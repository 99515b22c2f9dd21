/**
 * PostgreSQL's text of an array as JSON: `{1,NULL,"a b"}`. Null for a text of another form, and for an array whose
 * lower bounds are not 1, which JSON cannot hold. `element` gives the JSON of one element.
 */
export function arrayJson(text: string, element: (text: string) => string | null): string | null {
  const reader = new ArrayReader(text, element);
  const json = reader.array();
  return reader.at === text.length ? json : null;
}

/** Gives the JSON of one element of an array type, such as `integer[]`. */
export function elementJson(source_type: string): (text: string) => string | null {
  const type = source_type.replace(/\[\]$/, '').replace(/\([^)]*\)$/, '');
  if (/^(smallint|integer|bigint|oid|numeric|real|double precision)$/.test(type)) {
    return (text) => (JSON_NUMBER.test(text) ? text : JSON.stringify(text));
  }
  if (type === 'boolean') return (text) => (text === 't' ? 'true' : 'false');
  if (type === 'json' || type === 'jsonb') return (text) => text;
  return (text) => JSON.stringify(text);
}

/** PostgreSQL also has NaN and Infinity, which JSON lacks. */
export const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

class ArrayReader {
  at = 0;

  constructor(
    private readonly text: string,
    private readonly element: (text: string) => string | null,
  ) {}

  array(): string | null {
    if (this.text[this.at] !== '{') return null;
    this.at += 1;
    const items: string[] = [];
    if (this.text[this.at] === '}') {
      this.at += 1;
      return '[]';
    }
    while (this.at < this.text.length) {
      const item = this.#item();
      if (item === null) return null;
      items.push(item);
      const next = this.text[this.at];
      this.at += 1;
      if (next === '}') return `[${items.join(',')}]`;
      if (next !== ',') return null;
    }
    return null;
  }

  #item(): string | null {
    const first = this.text[this.at];
    if (first === '{') return this.array();
    if (first === '"') return this.#quoted();
    const start = this.at;
    while (this.at < this.text.length && this.text[this.at] !== ',' && this.text[this.at] !== '}') this.at += 1;
    const bare = this.text.slice(start, this.at);
    return bare === 'NULL' ? 'null' : this.element(bare);
  }

  #quoted(): string | null {
    let value = '';
    for (let at = this.at + 1; at < this.text.length; at += 1) {
      const character = this.text[at];
      if (character === '"') {
        this.at = at + 1;
        return this.element(value);
      }
      if (character === '\\') at += 1;
      value += this.text[at] ?? '';
    }
    return null;
  }
}
