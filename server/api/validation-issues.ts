import type { z } from 'zod';
import type { ValidationIssue } from '../platform/errors.ts';

type Problem = z.core.$ZodIssue;
type IssueText = Pick<ValidationIssue, 'type' | 'msg'>;
interface Place {
  /** First element of `loc`: body, query or path. */
  where: string;
  /** The validated value: an absent key is reported as `missing`, whatever its type. */
  value: unknown;
}

/** Maps zod issues to those of HTTPValidationError. Never repeats the input, which may be a secret. */
export function toValidationIssues(problems: readonly Problem[], { where, value }: Place): ValidationIssue[] {
  const issues = problems
    .flatMap((one) => flatten(one, value))
    .flatMap((problem) => issuesOf(problem, { where, value }));
  return [...new Map(issues.map((issue) => [JSON.stringify([issue.loc, issue.type]), issue])).values()];
}

/** Reports a union by the branch whose keys fit best, and of several by the one that matched deepest. */
function flatten(problem: Problem, value: unknown): Problem[] {
  if (problem.code !== 'invalid_union' || problem.errors.length === 0) return [problem];
  const depth = (branch: Problem[]) => Math.max(0, ...branch.map((one) => one.path.length));
  const isMissing = (one: Problem) =>
    one.code !== 'custom' && valueAt(value, [...problem.path, ...one.path]) === undefined;
  const misfits = (branch: Problem[]) =>
    branch.reduce((sum, one) => sum + (one.code === 'unrecognized_keys' ? one.keys.length : isMissing(one) ? 1 : 0), 0);
  const best = problem.errors.toSorted((a, b) => misfits(a) - misfits(b) || depth(b) - depth(a))[0]!;
  return best.flatMap((one) => flatten({ ...one, path: [...problem.path, ...one.path] }, value));
}

function issuesOf(problem: Problem, { where, value }: Place): ValidationIssue[] {
  const path = problem.path.map((part) => (typeof part === 'number' ? part : String(part)));
  const loc = [where, ...path];
  if (problem.code === 'unrecognized_keys') {
    return problem.keys.map((key) => ({
      loc: [...loc, key],
      msg: 'Extra inputs are not permitted',
      type: 'extra_forbidden',
    }));
  }
  if (problem.code !== 'custom' && valueAt(value, problem.path) === undefined) {
    return [{ loc, msg: 'Field required', type: 'missing' }];
  }
  return [{ loc, ...nameOf(problem) }];
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

function nameOf(problem: Problem): IssueText {
  switch (problem.code) {
    case 'invalid_type':
      return TYPES[problem.expected] ?? { type: 'value_error', msg: `Input should be of type ${problem.expected}` };
    case 'invalid_value':
      return { type: 'enum', msg: `Input should be ${problem.values.map(String).join(', ')}` };
    case 'invalid_union':
      return { type: 'union_tag_invalid', msg: 'Input matches none of the allowed forms' };
    case 'invalid_format':
      return FORMATS[problem.format] ?? { type: 'value_error', msg: problem.message };
    case 'too_small':
      return tooSmall(problem.origin, Number(problem.minimum), problem.inclusive ?? true);
    case 'too_big':
      return tooBig(problem.origin, Number(problem.maximum), problem.inclusive ?? true);
    case 'not_multiple_of':
      return { type: 'multiple_of', msg: `Input should be a multiple of ${problem.divisor}` };
    default:
      return { type: 'value_error', msg: problem.message };
  }
}

const INTEGER = { type: 'int_parsing', msg: 'Input should be a valid integer' };
const DICTIONARY = { type: 'dict_type', msg: 'Input should be a valid dictionary' };

const TYPES: Record<string, IssueText> = {
  string: { type: 'string_type', msg: 'Input should be a valid string' },
  number: INTEGER,
  int: INTEGER,
  boolean: { type: 'bool_parsing', msg: 'Input should be true or false' },
  array: { type: 'list_type', msg: 'Input should be a valid list' },
  object: DICTIONARY,
  record: DICTIONARY,
  nan: INTEGER,
};

const UUID = { type: 'uuid_parsing', msg: 'Input should be a valid UUID' };

const FORMATS: Record<string, IssueText> = {
  uuid: UUID,
  guid: UUID,
  date: { type: 'date_from_datetime_parsing', msg: 'Input should be a valid date, YYYY-MM-DD' },
  datetime: { type: 'datetime_parsing', msg: 'Input should be a valid RFC 3339 timestamp' },
  regex: { type: 'string_pattern_mismatch', msg: 'The text does not match the required pattern' },
};

function tooSmall(origin: string, limit: number, inclusive: boolean): IssueText {
  if (origin === 'string') return { type: 'string_too_short', msg: `Text should have at least ${limit} characters` };
  if (isList(origin)) return { type: 'too_short', msg: `List should have at least ${limit} items` };
  if (!inclusive) return { type: 'greater_than', msg: `Input should be greater than ${limit}` };
  return { type: 'greater_than_equal', msg: `Input should be greater than or equal to ${limit}` };
}

function tooBig(origin: string, limit: number, inclusive: boolean): IssueText {
  if (origin === 'string') return { type: 'string_too_long', msg: `Text should have at most ${limit} characters` };
  if (isList(origin)) return { type: 'too_long', msg: `List should have at most ${limit} items` };
  if (!inclusive) return { type: 'less_than', msg: `Input should be less than ${limit}` };
  return { type: 'less_than_equal', msg: `Input should be less than or equal to ${limit}` };
}

const isList = (origin: string) => origin === 'array' || origin === 'set' || origin === 'map';
