/** Codes of findings, as callers see them. */
export const FINDING_CODES = [
  'changes_unsupported',
  'cursor_required',
  'datasets_unsupported',
  'duplicate_destination_column',
  'duplicate_destination_table',
  'duplicate_field',
  'invalid_filter',
  'invalid_name',
  'name_too_long',
  'primary_key_required',
  'reserved_name',
  'reverse_etl_only',
  'type_incompatible',
  'unfit_cursor',
  'unfit_key',
  'unfit_mask',
  'unknown_field',
  'unsupported_sync_mode',
] as const;
export type FindingCode = (typeof FINDING_CODES)[number];

/** A setting of a stream that would lose, mix or change rows, or that cannot be carried out. */
export interface SettingFinding {
  code: FindingCode;
  /** What is wrong, on what, and what to do. */
  message: string;
  /** Path of the setting within the stream, such as `['filters', 0, 'value']`. */
  place: (string | number)[];
}
