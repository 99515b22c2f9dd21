/** A user's picture, or initials without one. */
export function Avatar({ name, url, size = 'md' }: { name: string; url: string | null; size?: 'md' | 'lg' }) {
  const initials = name
    .split(/\s+/)
    .map((word) => word[0] ?? '')
    .filter((_, index, all) => index === 0 || index === all.length - 1)
    .join('');
  return (
    <span className="avatar" data-size={size} aria-hidden="true">
      {url === null ? initials.toUpperCase() : <img src={url} alt="" />}
    </span>
  );
}
