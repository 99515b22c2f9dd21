import type { Cell, Field, LogicalType, StreamSchema, TargetColumn } from '../connectors/contract/connector.ts';
import { DataError, SchemaChangedError } from '../connectors/contract/errors.ts';
import { parseTime, rfc3339 } from '../connectors/cells/timestamp-text.ts';

/** A field of the destination and the value that is written to it: FieldMapping of the API. */
export interface FieldMapping {
  source_field: string;
  destination_field: string;
  is_match_key: boolean;
  transform: 'none' | 'lowercase' | 'uppercase' | 'trim' | 'sha256' | 'date_iso' | 'number';
  /** If set, the field has this value in every row. */
  constant_value: string | null;
}

export interface MappedField {
  field: Field;
  mapping: FieldMapping;
}

/** @throws SchemaChangedError when a mapped field is no longer in the source */
export function mappedFields(schema: StreamSchema, mappings: readonly FieldMapping[]): MappedField[] {
  return mappings.map((mapping) => {
    const named = schema.fields.find(({ path }) => path.join('.') === mapping.source_field);
    // A constant needs no field of its own: it takes the position of any field of the row.
    const field = named ?? (mapping.constant_value === null ? undefined : schema.fields[0]);
    if (field) return { field, mapping };
    throw new SchemaChangedError(
      'field_missing',
      `Field ${mapping.source_field} of ${schema.name} no longer exists in the source. Change the field mapping`,
    );
  });
}

export function mappedTarget({ field, mapping }: MappedField): TargetColumn {
  const kept = mapping.transform === 'none' && mapping.constant_value === null;
  return {
    name: mapping.destination_field,
    type: kept ? field.type : mappedType(mapping),
    source_type: kept ? field.source_type : null,
    dialect: kept ? field.dialect : null,
    nullable: mapping.constant_value === null && field.nullable,
  };
}

const mappedType = ({ transform, constant_value }: FieldMapping): LogicalType =>
  transform === 'number' && constant_value === null ? 'number' : 'string';

const DATE = /^\d{4}-\d\d-\d\d$/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/** The transformation of a value, or null if the mapping has none. NULL stays NULL. Errors name the field. */
export function fieldChange(mapping: FieldMapping): ((cell: Cell) => Cell) | null {
  const { transform, constant_value, source_field } = mapping;
  if (constant_value !== null) return () => constant_value;
  const known = (change: (cell: string) => string) => (cell: Cell) => (cell === null ? null : change(cell));
  const refuse = (what: string) =>
    new DataError('value_does_not_fit', `The mapping of ${source_field} requires a ${what}, and a value is not one`);
  switch (transform) {
    case 'none':
      return null;
    case 'lowercase':
      return known((cell) => cell.toLowerCase());
    case 'uppercase':
      return known((cell) => cell.toUpperCase());
    case 'trim':
      return known((cell) => cell.trim());
    case 'sha256':
      return known((cell) => Bun.SHA256.hash(cell, 'hex'));
    case 'date_iso':
      return known((cell) => {
        if (DATE.test(cell)) return cell;
        const time = parseTime(cell);
        const text = time && rfc3339(time);
        if (text === null) throw refuse('date');
        return text;
      });
    case 'number':
      return known((cell) => {
        const text = cell.trim();
        if (!NUMBER.test(text)) throw refuse('number');
        return canonicalNumber(text);
      });
  }
}

/** Keeps every digit: `+.5` becomes `0.5`, `007.` becomes `7`. */
function canonicalNumber(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = ''] =
    /^([+-]?)0*(\d*)\.?(\d*)((?:[eE].*)?)$/.exec(text) ?? [];
  return `${sign === '-' ? '-' : ''}${whole || '0'}${fraction ? `.${fraction}` : ''}${exponent}`;
}
