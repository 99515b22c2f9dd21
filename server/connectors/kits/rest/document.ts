import { z } from 'zod';
import { compileSelector } from './selector.ts';
import { templateProblem, type TemplateRoot } from './template.ts';

/** Aliases can expand a small document into a huge one. */
const MAX_ALIASES = 100;

export interface ParsedDocument {
  value: unknown;
  /** Line of the innermost node on a path that exists. */
  lineOf(path: readonly PropertyKey[]): number;
}

export type DocumentResult = { document: ParsedDocument; problem: null } | { document: null; problem: string };

/**
 * Parses YAML, and so JSON. A problem names the line.
 * @param options.lenient of a name that occurs twice the last value counts, and `<<` merges, as in Python
 */
export function parseYaml(text: string, { lenient = false }: { lenient?: boolean } = {}): DocumentResult {
  // Loaded with its first use: processes start often, and most never need it.
  const { isNode, LineCounter, parseDocument } = require('yaml') as typeof import('yaml');
  const lines = new LineCounter();
  const refuse = (problem: string): DocumentResult => ({ document: null, problem });
  try {
    const parsed = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      uniqueKeys: !lenient,
      merge: lenient,
    });
    const [broken] = parsed.errors;
    if (broken) return refuse(`Line ${lines.linePos(broken.pos[0]).line}: ${broken.message}`);
    const value: unknown = parsed.toJS({ maxAliasCount: MAX_ALIASES });
    const lineOf = (path: readonly PropertyKey[]) => {
      for (let length = path.length; length >= 0; length -= 1) {
        const node = parsed.getIn(path.slice(0, length), true);
        if (isNode(node) && node.range) return lines.linePos(node.range[0]).line;
      }
      return 1;
    };
    return { document: { value, lineOf }, problem: null };
  } catch (error) {
    return refuse(
      error instanceof RangeError ? 'The document is nested too deeply' : 'The document has too many aliases',
    );
  }
}

/** `streams[0].request.path` */
export const pathText = (path: readonly PropertyKey[]): string =>
  path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '') || 'the document';

/** Remembers the result for the last text: a form, a check and a read parse the same document one after the other. */
export function rememberLast<Result>(parse: (text: string) => Result): (text: string) => Result {
  let last: { text: string; result: Result } | null = null;
  return (text) => {
    if (last?.text !== text) last = { text, result: parse(text) };
    return last.result;
  };
}

/** Fields of definitions and settings, which report an invalid template or expression where it is written. */
export const template = (...roots: TemplateRoot[]) =>
  z
    .string()
    .max(10_000)
    .superRefine((text, ctx) => {
      const problem = templateProblem(text, roots);
      if (problem) ctx.addIssue({ code: 'custom', message: problem });
    });
export const selector = z
  .string()
  .min(1)
  .max(2000)
  .superRefine((text, ctx) => {
    const { problem } = compileSelector(text);
    if (problem) ctx.addIssue({ code: 'custom', message: `Not a valid JMESPath expression: ${problem}` });
  });
export const name = z.string().min(1).max(255);
