import type { ChangedValues } from '../../cells/value-gate.ts';
import type { Cell } from '../../contract/connector.ts';
import type { Dialect } from '../../kits/sql/dialect.ts';
import type { PendingTable } from '../../kits/sql/publish/pending-table.ts';
import type { ReadyTable } from '../../kits/sql/publish/ready.ts';
import type { Rejects } from '../../kits/sql/rejects.ts';
import type { Stage } from '../../kits/sql/stage.ts';
import type { StateRow } from '../../kits/sql/state-row.ts';
import type { MysqlSession } from '../connection/session.ts';
import type { MysqlTarget } from './target.ts';

/**
 * What a mode does with the rows. A statement that defines a table commits the open transaction, so all of those run
 * in `prepare`, before the transaction, and in `finish`, after it.
 */
export interface Load {
  /** Rows may become visible before the end of the stream. */
  readonly incremental: boolean;
  /** Creates the table that takes the rows. @returns its quoted name */
  prepare(): Promise<string>;
  /** Set for a merge. */
  readonly stage?: Stage;
  /** In the transaction: brings the rows into place. `rejects`: takes those that cannot be. */
  complete(rejects: Rejects | null): Promise<Completed>;
  /** A row that could not be loaded exists at the source; absent: what was not loaded stays as it is. */
  present?(row: readonly Cell[]): Promise<void>;
  /** After the commit: what no transaction can hold. */
  finish?(): Promise<void>;
  /** The table that an aborted attempt would leave behind. */
  readonly leftover?: string;
}

export interface Completed {
  /** Rows that replaced others, rows that are gone, and loaded ones that were rejected. */
  updated: number;
  deleted?: number;
  rejected?: number;
  changed?: ChangedValues;
  /** Committed with the state. */
  pending?: PendingTable;
  ready?: ReadyTable;
}

export interface Work {
  session: MysqlSession;
  dialect: Dialect;
  target: MysqlTarget;
  state: StateRow;
}
