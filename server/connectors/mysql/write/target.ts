import { type Column, keyOf, type Target } from '../../kits/sql/target.ts';
import { type Shape, shapeOf } from '../connection/cell-shapes.ts';

/** `type`: with the character set of the column where that is not utf8mb4. */
export interface MysqlColumn extends Column {
  shape: Shape;
}

export interface MysqlTarget extends Target {
  typed: MysqlColumn[];
}

/** The target with the shape in which the server takes the cells of each column. */
export function withShapes(target: Target): MysqlTarget {
  const key = keyOf(target);
  const typed = target.typed.map((column, index) => ({
    ...column,
    // A key is NOT NULL, in which the server makes NULL the present time.
    replacesNull: column.replacesNull || (key.includes(column.name) && column.type.startsWith('timestamp')),
    shape: shapeOf(target.columns[index]!, column.type),
  }));
  return { ...target, typed };
}
