/** What can be wrong with a rule. */
export const RULE_ERROR_CODES = [
  'parse_error',
  'type_error',
  'unknown_variable',
  'function_not_allowed',
  'limit_exceeded',
  'result_not_boolean',
  'evaluation_error',
] as const;
export type RuleErrorCode = (typeof RULE_ERROR_CODES)[number];

/** Where in the rule's text: line and column count from 1, the offset from 0. */
export interface RulePosition {
  line: number;
  column: number;
  offset: number;
}

/** A rule that cannot be used, or that could not be evaluated. */
export class RuleError extends Error {
  constructor(
    readonly code: RuleErrorCode,
    message: string,
    readonly position: RulePosition | null = null,
  ) {
    super(message);
    this.name = 'RuleError';
  }
}

export function positionAt(source: string, offset: number): RulePosition {
  const before = source.slice(0, offset).split('\n');
  return { line: before.length, column: before.at(-1)!.length + 1, offset: Math.min(offset, source.length) };
}
