import { Environment } from '@marcbachmann/cel-js';
import { VARIABLES } from '../../events/variables.ts';
import { regexMatches } from './regex.ts';
import { identifierOf } from './normalize-source.ts';

export const MAX_SOURCE_LENGTH = 2000;

const LIMITS = { maxAstNodes: 300, maxDepth: 20, maxListElements: 100, maxMapEntries: 1, maxCallArguments: 4 };

/** Functions and methods that a rule may call. */
export const FUNCTIONS: ReadonlySet<string> = new Set([
  'size',
  'startsWith',
  'endsWith',
  'contains',
  'regex_matches',
  'lower',
  'upper',
  'trim',
  'duration',
  'timestamp',
]);

function language(): Environment {
  const environment = new Environment({ limits: LIMITS });
  environment.registerFunction('regex_matches(string, string): bool', regexMatches);
  environment.registerFunction('lower(string): string', (text: string) => text.toLowerCase());
  environment.registerFunction('upper(string): string', (text: string) => text.toUpperCase());
  environment.registerFunction('trim(string): string', (text: string) => text.trim());
  return environment;
}

/** Checks types when a rule is saved: every variable has its type and can be compared to null. */
export const typedLanguage = typed();
/** Evaluates rules: every variable may be null. */
export const evaluationLanguage = dynamic();

function typed(): Environment {
  const environment = language();
  for (const type of ['int', 'double', 'string', 'bool', 'list<string>']) {
    environment.registerOperator(`${type} == null`, () => false);
  }
  for (const [name, type] of Object.entries(VARIABLES)) environment.registerVariable(identifierOf(name), type);
  return environment;
}

function dynamic(): Environment {
  const environment = language();
  for (const name of Object.keys(VARIABLES)) environment.registerVariable(identifierOf(name), 'dyn');
  return environment;
}
