import { RE2JS, RE2JSException } from 're2js';

const MAX_PROGRAM = 256;

/** Compiles a pattern. @throws Error for the user */
export function checkedPattern(pattern: string): RE2JS {
  let regex: RE2JS;
  try {
    regex = RE2JS.compile(pattern);
  } catch (error) {
    if (error instanceof RE2JSException)
      throw new Error(`The pattern is not valid: ${error.message}`, { cause: error });
    throw error;
  }
  if (regex.programSize() > MAX_PROGRAM) throw new Error('The pattern is too large: use fewer or smaller repetitions');
  return regex;
}
