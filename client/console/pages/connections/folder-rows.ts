import type { Summary } from '../../answers.ts';

/** A row of a list that is grouped: the heading of a folder, or a connection. */
export type ListRow =
  | { key: string; connection: Summary }
  | { key: string; folder: string; name: string; depth: number; count: number };

/** Connections that are in no folder, below all folders. */
export const NO_FOLDER = '';

/** A folder and those above it: `Finance` and `Finance/Invoices`. */
const withParents = (folder: string): string[] => {
  const levels = folder.split('/');
  return levels.map((_, at) => levels.slice(0, at + 1).join('/'));
};

/** Every folder with connections in it or below it, each behind the one above it. */
export function foldersOf(connections: Pick<Summary, 'folder'>[]): string[] {
  const used = new Set(connections.flatMap(({ folder }) => folder ?? []));
  const all = new Set([...used].flatMap(withParents));
  const order = (path: string) => path.replaceAll('/', '\u0001');
  return [...all].toSorted((a, b) => order(a).localeCompare(order(b), 'en', { numeric: true }));
}

/** Connections below the headings of their folders, in the order given; without folders, no headings. */
export function rowsOf(connections: Summary[], collapsed: readonly string[]): ListRow[] {
  const folders = foldersOf(connections);
  if (folders.length === 0) return connections.map(rowOf);
  const own = Map.groupBy(connections, ({ folder }) => folder ?? NO_FOLDER);
  const counts = new Map<string, number>();
  for (const [folder, inside] of own) {
    for (const path of withParents(folder)) counts.set(path, (counts.get(path) ?? 0) + inside.length);
  }
  const isHidden = (path: string) =>
    withParents(path)
      .slice(0, -1)
      .some((parent) => collapsed.includes(parent));
  const all = own.has(NO_FOLDER) ? [...folders, NO_FOLDER] : folders;
  return all
    .filter((path) => !isHidden(path))
    .flatMap((path) => [
      {
        key: `folder ${path}`,
        folder: path,
        name: path.split('/').at(-1) || 'No folder',
        depth: path.split('/').length - 1,
        count: counts.get(path) ?? 0,
      },
      ...(collapsed.includes(path) ? [] : (own.get(path) ?? []).map(rowOf)),
    ]);
}

const rowOf = (connection: Summary): ListRow => ({ key: connection.id, connection });
