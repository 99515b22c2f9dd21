import type { z } from 'zod';

export interface Plain {
  path: PropertyKey[];
  message: string;
}

/** Of alternatives, the one that the value was meant for: that which does not stumble over its very kind. */
export function plainIssues(issue: z.core.$ZodIssue, before: PropertyKey[] = []): Plain[] {
  const path = [...before, ...issue.path];
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return [{ path, message: issue.message }];
  const meant = issue.errors.find(
    (branch) => !branch.some((one) => one.path.length === 0 && one.code === 'invalid_type'),
  );
  return (meant ?? issue.errors[0] ?? []).flatMap((one) => plainIssues(one, path));
}
