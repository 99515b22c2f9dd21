import { type CompiledRule, compileRule } from './compile.ts';

const MAX_RULES = 5000;
const rules = new Map<string, CompiledRule>();

/** The compiled form of a rule's text, made once a process: a text never changes its meaning. @throws RefusedRule */
export function compiledRule(source: string): CompiledRule {
  const known = rules.get(source);
  if (known) return known;
  const made = compileRule(source);
  if (rules.size >= MAX_RULES) rules.delete(rules.keys().next().value!);
  rules.set(source, made);
  return made;
}
