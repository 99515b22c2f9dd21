/** A property of JSON Schema, as far as it decides on the type of a column. */
export interface Property {
  type?: string | string[];
  format?: string;
  airbyte_type?: string;
  oneOf?: Property[];
  anyOf?: Property[];
}
