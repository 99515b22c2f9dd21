import { serveJobs } from '../../platform/limited-process/child.ts';
import { type CompiledRule, compileRule, RefusedRule } from './compile.ts';
import type { RuleError } from './errors.ts';
import { evaluateRule, ruleEvent } from './evaluate-rule.ts';
import type { RuleFailure, RuleTrial, RuleTrialJob } from './rule-trial.ts';

async function* tryRule({ source, events }: RuleTrialJob): AsyncGenerator<RuleTrial> {
  let rule: CompiledRule;
  try {
    rule = compileRule(source);
  } catch (error) {
    if (!(error instanceof RefusedRule)) throw error;
    const { variables, functions, unknown_variables, result_type } = error;
    yield { rejected: { error: failureOf(error), variables, functions, unknown_variables, result_type } };
    return;
  }
  const seen = events.map(ruleEvent);
  const started = performance.now();
  const outcomes = seen.map((event) => {
    const { matched, error } = evaluateRule(rule, event);
    return { matched, error: error && failureOf(error) };
  });
  const duration_ms = performance.now() - started;
  const { normalized, kinds, variables, functions } = rule;
  const unknown_kinds = rule.unknown_kinds.map(({ kind }) => kind);
  yield { accepted: { normalized, kinds, unknown_kinds, variables, functions, outcomes, duration_ms } };
}

const failureOf = ({ code, message, position }: RuleError): RuleFailure => ({ code, message, position });

serveJobs(tryRule);
