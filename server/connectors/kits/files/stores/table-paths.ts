import type { WriteTarget } from '../../../contract/connector.ts';
import { safeSegment } from './local-files.ts';

/** The folder of a table's files, relative to the root of the store: `<path>/<schema>/<table>`. */
export const tablePath = (path: string, { schema, table }: Pick<WriteTarget, 'schema' | 'table'>) =>
  [path, ...(schema ? [safeSegment(schema)] : []), safeSegment(table)].join('/');

/** The folders of a table's files and of the commits, relative to the root of the store. */
export const tablePaths = (path: string, target: WriteTarget) => ({
  table: tablePath(path, target),
  states: `${path}/_pipeline_state`,
});
