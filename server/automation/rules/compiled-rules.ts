import { LRUCache } from 'lru-cache';
import { type CompiledRule, compileRule } from './compile.ts';

const rules = new LRUCache<string, CompiledRule>({ max: 5000 });

/** The compiled form of a rule, cached in this process: the meaning of a text never changes. @throws RefusedRule */
export function compiledRule(source: string): CompiledRule {
  const known = rules.get(source);
  if (known) return known;
  const compiled = compileRule(source);
  rules.set(source, compiled);
  return compiled;
}
