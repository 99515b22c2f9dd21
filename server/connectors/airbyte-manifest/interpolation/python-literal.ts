import { rawNumber } from '../../cells/json-line.ts';
import { floatText, pyFloat } from './python-number.ts';
import { PyDuration, PyTime } from './python-time.ts';

/** Python's `str` of a value. Manifests rely on it, since templates result in text. */
export function pyText(value: unknown): string {
  return typeof value === 'string' ? value : pyRepr(value);
}

function pyRepr(value: unknown): string {
  if (value === undefined) return '';
  if (value === null) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : floatText(value);
  if (value instanceof PyTime || value instanceof PyDuration) return value.text();
  const digits = rawNumber(value);
  if (digits !== null) return digits;
  if (Array.isArray(value)) return `[${value.map(pyRepr).join(', ')}]`;
  if (typeof value === 'function') return '<function>';
  const entries = Object.entries(value).map(([name, item]) => `${quoted(name)}: ${pyRepr(item)}`);
  return `{${entries.join(', ')}}`;
}

function quoted(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t');
  return escaped.includes("'") && !escaped.includes('"') ? `"${escaped}"` : `'${escaped.replaceAll("'", "\\'")}'`;
}

const MAX_DEPTH = 50;
const STARTS = /^[ \t]*[-+\d.'"[({TFN]/;
const NUMBER = /[-+]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d+)?/y;
const WORD = /True|False|None/y;
const SPACE = /\s*/y;
const WORDS: Record<string, unknown> = { True: true, False: false, None: null };

/** Python's `literal_eval`: the value of a literal, or the text itself when it is not one. */
export function literalEval(text: string): unknown {
  if (!STARTS.test(text)) return text;
  try {
    return new LiteralReader(text.replace(/^[ \t]+/, '')).whole();
  } catch {
    return text;
  }
}

class LiteralReader {
  #at = 0;

  constructor(private readonly text: string) {}

  whole(): unknown {
    const value = this.#value(0);
    this.#space();
    if (this.text[this.#at] === ',') return this.#rest([value]);
    if (this.#at < this.text.length) throw new SyntaxError('more than a literal');
    return value;
  }

  /** A tuple without parentheses. */
  #rest(items: unknown[]): unknown[] {
    while (this.#take(',')) {
      this.#space();
      if (this.#at >= this.text.length) return items;
      items.push(this.#value(0));
      this.#space();
    }
    if (this.#at < this.text.length) throw new SyntaxError('more than a literal');
    return items;
  }

  #value(depth: number): unknown {
    if (depth > MAX_DEPTH) throw new SyntaxError('too deep');
    this.#space();
    const char = this.text[this.#at];
    if (char === "'" || char === '"') return this.#string(char);
    if (char === '[') return this.#list(']', depth);
    if (char === '(') return this.#parenthesis(depth);
    if (char === '{') return this.#braces(depth);
    const word = this.#match(WORD);
    if (word !== null) return WORDS[word];
    return this.#number();
  }

  #number(): unknown {
    const digits = this.#match(NUMBER);
    if (digits === null || digits === '') throw new SyntaxError('not a literal');
    const plain = digits.replaceAll('_', '');
    // `007` is not a number in Python, and nothing may follow a number directly.
    if (/^[-+]?0\d/.test(plain) && !/[.eE]/.test(plain)) throw new SyntaxError('leading zero');
    if (digits.endsWith('_') || /[\w.]/.test(this.text[this.#at] ?? ' ')) throw new SyntaxError('not a number');
    const value = Number(plain);
    if (/[.eE]/.test(plain)) return pyFloat(value);
    // A larger integer would lose digits as a number: the text keeps them.
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw new SyntaxError('too large');
    return value;
  }

  #string(quote: string): string {
    const long = this.text.startsWith(quote.repeat(3), this.#at);
    const end = long ? quote.repeat(3) : quote;
    let out = '';
    this.#at += end.length;
    while (!this.text.startsWith(end, this.#at)) {
      const char = this.text[this.#at];
      if (char === undefined || (!long && char === '\n')) throw new SyntaxError('open string');
      this.#at += 1;
      out += char === '\\' ? this.#escape() : char;
    }
    this.#at += end.length;
    return out;
  }

  #escape(): string {
    const char = this.text[this.#at] ?? '';
    this.#at += 1;
    const known = ESCAPES[char];
    if (known !== undefined) return known;
    if (char !== 'u' && char !== 'x') return `\\${char}`;
    const size = char === 'u' ? 4 : 2;
    const code = this.text.slice(this.#at, this.#at + size);
    this.#at += size;
    return String.fromCharCode(Number.parseInt(code, 16));
  }

  #list(end: string, depth: number): unknown[] {
    this.#at += 1;
    const items: unknown[] = [];
    for (this.#space(); this.text[this.#at] !== end; this.#space()) {
      items.push(this.#value(depth + 1));
      this.#space();
      if (!this.#take(',') && this.text[this.#at] !== end) throw new SyntaxError('not a list');
    }
    this.#at += 1;
    return items;
  }

  #parenthesis(depth: number): unknown {
    const from = this.#at;
    const items = this.#list(')', depth);
    const comma = /,\s*\)$/.test(this.text.slice(from, this.#at));
    return items.length === 1 && !comma ? items[0] : items;
  }

  #braces(depth: number): unknown {
    this.#at += 1;
    const entries: [string, unknown][] = [];
    const members: unknown[] = [];
    for (this.#space(); this.text[this.#at] !== '}'; this.#space()) {
      const key = this.#value(depth + 1);
      this.#space();
      if (this.#take(':')) entries.push([pyText(key), this.#value(depth + 1)]);
      else members.push(key);
      this.#space();
      if (!this.#take(',') && this.text[this.#at] !== '}') throw new SyntaxError('no mapping');
    }
    this.#at += 1;
    if (members.length > 0 && entries.length > 0) throw new SyntaxError('a set and a mapping');
    return members.length > 0 ? members : Object.fromEntries(entries);
  }

  #take(char: string): boolean {
    if (this.text[this.#at] !== char) return false;
    this.#at += 1;
    return true;
  }

  #space(): void {
    this.#match(SPACE);
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.text)?.[0] ?? null;
    this.#at += found?.length ?? 0;
    return found;
  }
}

const ESCAPES: Record<string, string> = { n: '\n', r: '\r', t: '\t', '\\': '\\', "'": "'", '"': '"', '\n': '' };
