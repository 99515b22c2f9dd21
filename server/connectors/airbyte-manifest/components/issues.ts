import type { z } from 'zod';

export interface PlainIssue {
  path: PropertyKey[];
  message: string;
}

/** Of a union, the issues of the branch that the value is most likely meant for: the one with the right basic type. */
export function plainIssues(issue: z.core.$ZodIssue, before: PropertyKey[] = []): PlainIssue[] {
  const path = [...before, ...issue.path];
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return [{ path, message: issue.message }];
  const meant = issue.errors.find(
    (branch) => !branch.some((one) => one.path.length === 0 && one.code === 'invalid_type'),
  );
  return (meant ?? issue.errors[0] ?? []).flatMap((one) => plainIssues(one, path));
}
