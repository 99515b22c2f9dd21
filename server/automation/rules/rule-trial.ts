import type { RuleErrorCode, RulePosition } from './errors.ts';

/** A rule to evaluate on events, given by their facts. */
export interface RuleTrialJob {
  source: string;
  events: Record<string, unknown>[];
}

/** An error of a rule as plain data. */
export interface RuleFailure {
  code: RuleErrorCode;
  message: string;
  position: RulePosition | null;
}

interface RuleNames {
  variables: string[];
  functions: string[];
}

/** A rule that a trigger could have, and its result for each event. */
export interface AcceptedRule extends RuleNames {
  normalized: string;
  kinds: string[] | null;
  /** Kinds that it names but that do not exist. */
  unknown_kinds: string[];
  outcomes: { matched: boolean; error: RuleFailure | null }[];
  duration_ms: number;
}

export interface RejectedRule extends RuleNames {
  error: RuleFailure;
  unknown_variables: string[];
  result_type: string | null;
}

export type RuleTrial = { accepted: AcceptedRule } | { rejected: RejectedRule };
