import type { TargetColumn, WriteTarget } from '../../server/connectors/contract/connector.ts';

const column = (name: string, type: TargetColumn['type']): TargetColumn => ({
  name,
  type,
  source_type: null,
  dialect: null,
  nullable: true,
});

export const TWO = [column('id', 'integer'), column('text', 'string')];

/** A table of one column. */
export function s3Target(more: Partial<WriteTarget> & { fence: number }): WriteTarget {
  const ids = { connection_id: 'c', stream_id: 's', connection_run_id: 'r', stream_run_id: `run-${more.fence}` };
  const table = { schema: null, table: 't', primary_key: [], cursor_column: null, mode: 'append' as const };
  return { ...ids, ...table, columns: [column('id', 'integer')], state_version: 0, ...more };
}
