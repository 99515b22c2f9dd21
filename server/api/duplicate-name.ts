import { badRequest } from '../platform/errors.ts';

const UNIQUE_VIOLATION = '23505';

/** Turns the violation of a unique index on names into 400 `duplicate_name`. Other errors pass through. */
export async function refuseDuplicateName<Result>(what: string, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (isUniqueViolation(error)) throw duplicateName(what);
    throw error;
  }
}

export const duplicateName = (what: string) =>
  badRequest('duplicate_name', `Another ${what} with this name exists`, { field: 'name' });

/** The driver's error is the cause of the one that the query builder throws. */
export function isUniqueViolation(error: unknown): boolean {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return typeof cause === 'object' && cause !== null && 'code' in cause && cause.code === UNIQUE_VIOLATION;
}
