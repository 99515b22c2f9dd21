import { pyText } from '../interpolation/python-literal.ts';

/** Fields without those that have no value. */
export const present = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));

/** URL-encoded fields. A list repeats its name; fields without a value are left out. */
export function formText(fields: Record<string, unknown>): string {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(present(fields)))
    for (const one of [value].flat()) form.append(name, pyText(one));
  return form.toString();
}
