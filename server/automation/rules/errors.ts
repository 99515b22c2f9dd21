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

/** A position in the rule's text. Line and column start at 1, the offset at 0. */
export interface RulePosition {
  line: number;
  column: number;
  offset: number;
}

/** A rule that is invalid or that failed to evaluate. */
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
