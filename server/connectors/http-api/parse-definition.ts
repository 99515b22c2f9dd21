import { isNode, LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';
import { type Definition, DefinitionSchema } from './definition.ts';
import { referencesIn } from './template.ts';

const MOST_PROBLEMS = 10;
/** Aliases can make a small document a huge one. */
const MOST_ALIASES = 100;

export type ParsedDefinition = { definition: Definition; problem: null } | { definition: null; problem: string };

let last: { text: string; parsed: ParsedDefinition } | null = null;

/** Reads a document in YAML (and so in JSON). A problem names line and place. */
export function parseDefinition(text: string): ParsedDefinition {
  if (last?.text !== text) last = { text, parsed: parse(text) };
  return last.parsed;
}

function parse(text: string): ParsedDefinition {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const refuse = (problem: string): ParsedDefinition => ({ definition: null, problem });
  const [broken] = document.errors;
  if (broken) return refuse(`Line ${lines.linePos(broken.pos[0]).line}: ${broken.message}`);
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MOST_ALIASES });
  } catch {
    return refuse('The document has too many aliases');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuse('The definition must be an object with base_url and streams');
  }
  const result = DefinitionSchema.safeParse(value);
  if (result.success) return { definition: result.data, problem: null };
  const lineOf = (path: PropertyKey[]) => {
    for (let length = path.length; length >= 0; length -= 1) {
      const node = document.getIn(path.slice(0, length), true);
      if (isNode(node) && node.range) return lines.linePos(node.range[0]).line;
    }
    return 1;
  };
  const issues = result.error.issues.slice(0, MOST_PROBLEMS);
  return refuse(
    issues.map((issue) => `Line ${lineOf(issue.path)}, ${placeOf(issue.path)}: ${wordsOf(issue)}`).join('; '),
  );
}

/** `streams[0].request.path` */
const placeOf = (path: PropertyKey[]) =>
  path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '') || 'the document';

function wordsOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') return `there is no setting "${issue.keys.join('", "')}"`;
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined')) return 'this is missing';
  return issue.message;
}

/** `config.x` and `secrets.x` that the document needs and the settings do not have. */
export function missingValues(
  definition: Definition,
  given: { config: Record<string, unknown>; secrets: Record<string, unknown> },
): { root: 'config' | 'secrets'; name: string }[] {
  const needed = new Set(referencesIn(JSON.stringify(definition)));
  return Array.from(needed).flatMap((reference) => {
    const [root, name = ''] = reference.split('.');
    if (root !== 'config' && root !== 'secrets') return [];
    return Object.hasOwn(given[root], name) ? [] : [{ root, name } as const];
  });
}
