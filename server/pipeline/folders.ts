export const MAX_FOLDER_LEVELS = 4;
export const MAX_FOLDER_LENGTH = 200;

/** A folder's path without blanks around its levels, such as `Finance/Invoices`. */
export const trimmedFolder = (path: string): string =>
  path
    .split('/')
    .map((level) => level.trim())
    .join('/');

/** Whether a trimmed path has one to four levels, each with a name. */
export function isFolder(path: string): boolean {
  const levels = path.split('/');
  return levels.length <= MAX_FOLDER_LEVELS && levels.every((level) => level !== '');
}
