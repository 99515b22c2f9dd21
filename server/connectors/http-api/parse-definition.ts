import type { z } from 'zod';
import { parseYaml, pathText, rememberLast } from '../kits/rest/document.ts';
import { type Definition, DefinitionSchema } from './definition.ts';
import { referencesIn } from '../kits/rest/template.ts';

const MAX_PROBLEMS = 10;

export type ParsedDefinition = { definition: Definition; problem: null } | { definition: null; problem: string };

/** Parses a definition in YAML or JSON. A problem names line and path. */
export const parseDefinition = rememberLast((text: string): ParsedDefinition => {
  const refuse = (problem: string): ParsedDefinition => ({ definition: null, problem });
  const { document, problem } = parseYaml(text);
  if (!document) return refuse(problem);
  const { value, lineOf } = document;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuse('The definition must be an object with base_url and streams');
  }
  const result = DefinitionSchema.safeParse(value);
  if (result.success) return { definition: result.data, problem: null };
  const issues = result.error.issues.slice(0, MAX_PROBLEMS);
  return refuse(
    issues.map((issue) => `Line ${lineOf(issue.path)}, ${pathText(issue.path)}: ${messageOf(issue)}`).join('; '),
  );
});

function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') return `unknown setting "${issue.keys.join('", "')}"`;
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined')) return 'this setting is required';
  return issue.message;
}

/** `config.x` and `secrets.x` that the definition uses and the settings lack. */
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
