import { RE2JS } from 're2js';

/** A pattern of a manifest, which runs in linear time; null when RE2 does not support it. */
export function compilePattern(pattern: string): RE2JS | null {
  try {
    return RE2JS.compile(pattern);
  } catch {
    return null;
  }
}

/** The first group of the first match, or the match when there are no groups; null: no match. */
export function firstMatch(pattern: RE2JS, text: string): string | null {
  const matcher = pattern.matcher(text);
  if (!matcher.find()) return null;
  return matcher.groupCount() > 0 ? (matcher.group(1) ?? '') : (matcher.group() ?? '');
}
