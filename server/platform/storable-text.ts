/** Whether PostgreSQL can store a text. It takes NUL nowhere, and no lone surrogates in jsonb. */
export const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed();

/** The first text in a value, keys included, that cannot be stored. Null: there is none. */
export function unstorableIn(value: unknown): string | null {
  if (typeof value === 'string') return isStorable(value) ? null : value;
  if (typeof value !== 'object' || value === null) return null;
  for (const [key, item] of Object.entries(value)) {
    const found = unstorableIn(key) ?? unstorableIn(item);
    if (found !== null) return found;
  }
  return null;
}
