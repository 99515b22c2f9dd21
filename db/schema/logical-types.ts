/** Canonical types of a field. `type_native` beside it keeps the source's own type where both sides speak it. */
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
