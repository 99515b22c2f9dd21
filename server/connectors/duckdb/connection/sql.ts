import { identifier } from '../../kits/duckdb/instance.ts';
import { DATABASE } from './engine.ts';

export { identifier, literal } from '../../kits/duckdb/instance.ts';

export const relation = (schema: string, table: string) => `${DATABASE}.${identifier(schema)}.${identifier(table)}`;
export const columnList = (names: readonly string[]) => names.map(identifier).join(', ');

export const duckdbNames = { identifier, relation };
