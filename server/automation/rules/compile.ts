import { EvaluationError, ParseError, type ParseResult } from '@marcbachmann/cel-js';
import type { EventKind } from '../../events/kinds.ts';
import { isEventKind, VARIABLES, VARIABLES_OF } from '../../events/variables.ts';
import { inspect, NodeError } from './allow-list.ts';
import { positionAt, RuleError } from './errors.ts';
import { type NamedKind, namedKinds } from './named-kinds.ts';
import { evaluationLanguage, MAX_SOURCE_LENGTH, typedLanguage } from './language.ts';
import { resetWork } from './regex.ts';
import { identifierOf, type NormalizedSource, normalizeSource } from './normalize-source.ts';

/** A checked rule that can be evaluated any number of times. */
export interface CompiledRule {
  /** The text that is stored and compiled again: the user's text with aliases replaced. */
  normalized: string;
  /** Kinds of event that it can match. Null: any kind. */
  kinds: string[] | null;
  /** Kinds that it names but that do not exist. */
  unknown_kinds: { kind: string; error: RuleError }[];
  variables: string[];
  functions: string[];
  /** @param variables the result of `ruleVariables`. @throws RuleError `evaluation_error` or `limit_exceeded` */
  evaluate(variables: Record<string, unknown>): boolean;
}

/** A rule that does not compile, with what the rule tester shows of it. */
export class RefusedRule extends RuleError {
  /** Variables that do not exist, or not in the kinds of event that the rule can match. */
  unknown_variables: string[] = [];
  /** Type of the result, when that is the error. */
  result_type: string | null = null;
  variables: string[] = [];
  functions: string[] = [];
}

/** Compiles and checks a rule. @throws RefusedRule */
export function compileRule(source: string): CompiledRule {
  if (source.length > MAX_SOURCE_LENGTH) {
    throw new RefusedRule(
      'limit_exceeded',
      `A rule can have at most ${MAX_SOURCE_LENGTH} characters`,
      positionAt(source, 0),
    );
  }
  const normalized = normalizeSource(source);
  const place = (offset: number) => positionAt(source, normalized.originOf(offset));
  const parsed = parse(normalized, place);
  const parts = inspected(parsed, place);
  const refuse = (error: RefusedRule) => Object.assign(error, parts);
  const named = namedKinds(parsed.ast);
  const unknown = unknownVariables(parts.variables, named);
  if (unknown.length > 0) {
    const [name] = unknown;
    const isKnown = Object.hasOwn(VARIABLES, name!);
    const message = isKnown ? `${kindNames(named)} has no variable ${name}` : `Unknown variable ${name}`;
    const error = new RefusedRule(
      'unknown_variable',
      message,
      place(offsetOfName(normalized.text, identifierOf(name!))),
    );
    throw Object.assign(refuse(error), { unknown_variables: unknown });
  }
  checkTypes(normalized.text, place, refuse);
  return {
    normalized: normalized.text,
    kinds: named && [...new Set(named.map((one) => one.kind))],
    unknown_kinds: (named ?? [])
      .filter((one) => !isEventKind(one.kind))
      .map(({ kind, offset }) => ({
        kind,
        error: new RuleError('type_error', `Unknown event kind "${kind}"`, place(offset)),
      })),
    ...parts,
    evaluate: (variables) => evaluate(parsed, variables, place),
  };
}

/** Replaces a stored rule that no longer compiles: every evaluation fails with `error`. */
export const failingRule = (source: string, error: RuleError): CompiledRule => ({
  normalized: source,
  kinds: null,
  unknown_kinds: [],
  variables: [],
  functions: [],
  evaluate() {
    throw error;
  },
});

type Place = (offset: number) => ReturnType<typeof positionAt>;

function parse(normalized: NormalizedSource, place: Place): ParseResult {
  try {
    return evaluationLanguage.parse(normalized.text);
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    const code = error.code === 'limit_exceeded' ? 'limit_exceeded' : 'parse_error';
    throw new RefusedRule(code, error.summary, place(error.range?.start ?? 0));
  }
}

function inspected(parsed: ParseResult, place: Place) {
  try {
    return inspect(parsed.ast);
  } catch (error) {
    if (error instanceof NodeError) throw new RefusedRule(error.code, error.message, place(error.offset));
    throw error;
  }
}

/** Variables that no event has, or none of the kinds that the rule can match. */
function unknownVariables(used: string[], named: NamedKind[] | null): string[] {
  const kinds = (named ?? []).map((one) => one.kind).filter(isEventKind);
  const isKnown = (name: string) =>
    Object.hasOwn(VARIABLES, name) &&
    (kinds.length === 0 || kinds.some((kind: EventKind) => VARIABLES_OF[kind].has(name)));
  return used.filter((name) => !isKnown(name));
}

const kindNames = (named: NamedKind[] | null) => [...new Set((named ?? []).map((one) => one.kind))].join(', ');

function offsetOfName(text: string, name: string): number {
  const found = new RegExp(`(?<![\\w"'.])${name}(?!\\w)`).exec(text);
  return found?.index ?? 0;
}

function checkTypes(text: string, place: Place, refuse: (error: RefusedRule) => RefusedRule): void {
  const checked = typedLanguage.check(text);
  if (!checked.valid) {
    const error = checked.error;
    throw refuse(
      new RefusedRule('type_error', error?.summary ?? 'The types do not match', place(error?.range?.start ?? 0)),
    );
  }
  if (checked.type === 'bool') return;
  const message = `The result of a rule must be bool, not ${checked.type}`;
  throw Object.assign(refuse(new RefusedRule('result_not_boolean', message, place(0))), { result_type: checked.type });
}

function evaluate(parsed: ParseResult, variables: Record<string, unknown>, place: Place): boolean {
  resetWork();
  let result: unknown;
  try {
    result = parsed(variables);
  } catch (error) {
    const at = error instanceof EvaluationError ? error.range?.start : undefined;
    const message =
      error instanceof EvaluationError ? error.summary : error instanceof Error ? error.message : String(error);
    const code = /take too long/.test(message) ? 'limit_exceeded' : 'evaluation_error';
    throw new RuleError(code, message, at === undefined ? null : place(at));
  }
  if (typeof result === 'boolean') return result;
  throw new RuleError('evaluation_error', 'The result of the rule is neither true nor false', place(0));
}
