import type { SettingFinding } from '../../../pipeline/stream-check/finding.ts';

/** A finding about one stream of a request. */
export interface StreamFinding extends Pick<SettingFinding, 'code' | 'message'> {
  /** Path of the setting in the request, such as `streams.0.filters.0.value`. */
  field: string;
  stream_name: string;
  context?: Record<string, unknown>;
}
