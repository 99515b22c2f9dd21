/** Canonical types of fields, common to all connectors. */
export const LOGICAL_TYPES = [
  'string',
  'integer',
  'number',
  'boolean',
  'date',
  'timestamp',
  'timestamp_tz',
  'time',
  'json',
  'array',
  'binary',
] as const;
export type LogicalType = (typeof LOGICAL_TYPES)[number];
