/** How a language writes values. */
interface Dialect {
  nothing: string;
  yes: string;
  no: string;
  indent: number;
  text(value: string): string;
  key(name: string): string;
}

const quoted = (text: string) => JSON.stringify(text);

export const TYPESCRIPT: Dialect = {
  nothing: 'null',
  yes: 'true',
  no: 'false',
  indent: 2,
  text: (value) => (/['\\\n]/.test(value) ? quoted(value) : `'${value}'`),
  key: (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : quoted(name)),
};

export const PYTHON: Dialect = { nothing: 'None', yes: 'True', no: 'False', indent: 4, text: quoted, key: quoted };

/** A JSON value as an expression. `from`: the indentation of the line on which it begins. */
export function literal(value: unknown, dialect: Dialect, from = 0): string {
  if (value === null || value === undefined) return dialect.nothing;
  if (typeof value === 'boolean') return value ? dialect.yes : dialect.no;
  if (typeof value === 'string') return dialect.text(value);
  if (typeof value === 'number') return String(value);
  const inner = from + dialect.indent;
  const [open, close, items] = Array.isArray(value)
    ? ['[', ']', value.map((one) => literal(one, dialect, inner))]
    : ['{', '}', Object.entries(value).map(([key, one]) => `${dialect.key(key)}: ${literal(one, dialect, inner)}`)];
  if (items.length === 0) return open + close;
  return `${open}\n${items.map((item) => `${' '.repeat(inner)}${item},\n`).join('')}${' '.repeat(from)}${close}`;
}
