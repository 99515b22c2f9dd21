/** Function names of other rule languages, with their name here. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['str::regex_matches', 'regex_matches'],
  ['str::to_lowercase', 'lower'],
  ['str::to_uppercase', 'upper'],
  ['str::trim', 'trim'],
  // `namespace` is a reserved word of the expression language.
  ['namespace', '_namespace'],
]);

/** A rule in the form that the parser accepts, with a mapping back to the user's text. */
export interface NormalizedSource {
  text: string;
  /** Maps an offset in `text` to the user's text. */
  originOf(offset: number): number;
}

// Strings come before names, because r"…" is a string. Alternatives consume at least one character and do not overlap.
const TOKENS =
  /[rRbB]{0,2}(?:"""[^]*?"""|'''[^]*?''')|[bB]?[rR][bB]?(?:"[^"\n]*"|'[^'\n]*')|[bB]?(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|\/\/[^\n]*|[A-Za-z_]\w*(?:::\w+)*|\s+|[^]/gy;
const NAME = /^[A-Za-z_]\w*$/;

/** The name of a variable in a normalized rule. */
export const identifierOf = (variable: string) => (variable === 'namespace' ? '_namespace' : variable);
export const variableOf = (identifier: string) => (identifier === '_namespace' ? 'namespace' : identifier);

/** Replaces aliases, and `has(name)` by `(name != null)`. String literals stay unchanged. */
export function normalizeSource(source: string): NormalizedSource {
  const tokens = [...source.matchAll(TOKENS)];
  const moved: { to: number; from: number; length: number }[] = [];
  let text = '';
  for (let at = 0; at < tokens.length; at += 1) {
    const token = tokens[at]!;
    const has = token[0] === 'has' ? hasOf(tokens, at) : null;
    const replacement = has ? `(${identifierOf(has.name)} != null)` : ALIASES.get(token[0]);
    if (replacement !== undefined) moved.push({ to: text.length, from: token.index, length: replacement.length });
    text += replacement ?? token[0];
    if (!has) {
      if (replacement !== undefined)
        moved.push({ to: text.length, from: token.index + token[0].length, length: Infinity });
      continue;
    }
    at = has.end;
    const last = tokens[at]!;
    moved.push({ to: text.length, from: last.index + last[0].length, length: Infinity });
  }
  return {
    text,
    originOf(offset) {
      const part = moved.findLast((one) => one.to <= offset);
      if (!part) return offset;
      return part.length === Infinity ? part.from + (offset - part.to) : part.from;
    },
  };
}

/** The name in `has ( name )`, and the index of the closing parenthesis. */
function hasOf(tokens: RegExpMatchArray[], start: number): { name: string; end: number } | null {
  const taken: string[] = [];
  for (let at = start + 1; at < tokens.length && taken.length < 3; at += 1) {
    const text = tokens[at]![0];
    if (text.trim() === '') continue;
    taken.push(text);
    if (taken.length < 3) continue;
    const [open, name, close] = taken;
    return open === '(' && close === ')' && NAME.test(name!) ? { name: name!, end: at } : null;
  }
  return null;
}
