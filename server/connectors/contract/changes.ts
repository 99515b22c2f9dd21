/**
 * What happened to a row of the source.
 *
 * - `upsert`: it is there now, as its cells say. `unchanged`: indexes of columns that the source did not send because
 *   they are as before; their cells are null. Such a row changes the one that is there and never makes one.
 * - `delete`: it is gone. Only the cells of the key count.
 * - `truncate`: all rows before it are gone, those of the table as well. Its cells do not count.
 *
 * How destinations take them, in the order of arrival (a cursor has no say):
 *
 * | Mode | `upsert` | `delete`, and what `truncate` removes |
 * |---|---|---|
 * | `append` | one more row; unchanged cells are null | one more row |
 * | `append_dedup` | makes or replaces the row with this key | the row is deleted |
 * | `soft_delete` | the same, and the row is no longer marked | `_deleted_at` is set, the other cells stay |
 * | `update` | replaces the row, if it is there | nothing |
 */
export type RowChange =
  | { operation: 'upsert'; unchanged?: readonly number[] }
  | { operation: 'delete' }
  | { operation: 'truncate' };

export const UPSERT: RowChange = { operation: 'upsert' };
export const DELETE: RowChange = { operation: 'delete' };
export const TRUNCATE: RowChange = { operation: 'truncate' };

/** The column that soft_delete marks rows in, with a time; null: the row is there. */
export const DELETED_AT = '_deleted_at';
