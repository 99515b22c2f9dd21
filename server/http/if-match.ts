/** The revisions that a header If-Match names, `"7"` or `W/"7"`. Null: no header, or `*` for any. */
export function revisionsIn(header: string | null): string[] | null {
  if (header === null || header.trim() === '*') return null;
  return header.split(',').map((tag) => tag.trim().replace(/^W\//, '').replaceAll('"', ''));
}
