import type { ReadRequest } from '../../contract/connector.ts';
import { type IncrementalSelects, incrementalSelects } from '../../kits/sql/incremental-read.ts';
import { cursorOf, fromClause, orderBy } from '../../kits/sql/request.ts';
import { identifier, postgresNames } from '../connection/sql.ts';
import { conditions, resumeCondition } from './select.ts';

/** The SELECTs of an incremental read. */
export function selectsOf(request: ReadRequest, list: string): IncrementalSelects {
  const cursor = cursorOf(request);
  return incrementalSelects(request, {
    select: `select ${list} from ${fromClause(postgresNames, request)}`,
    conditions: conditions(request),
    isNull: `${identifier(cursor.path[0]!)} is null`,
    resumes: resumeCondition(request)[0] ?? null,
    orderBy: orderBy(postgresNames, cursor, request.primary_key),
  });
}
