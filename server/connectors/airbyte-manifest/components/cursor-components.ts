import { z } from 'zod';
import { parameters } from './record-components.ts';
import { RequestOption, template } from './request-components.ts';

const MinMaxDatetime = z.union([
  template.transform((datetime) => ({ type: 'MinMaxDatetime' as const, datetime })),
  z.object({
    type: z.literal('MinMaxDatetime'),
    datetime: template,
    datetime_format: z.string().default(''),
    min_datetime: template.optional(),
    max_datetime: template.optional(),
    $parameters: parameters,
  }),
]);
export type MinMaxDatetime = z.infer<typeof MinMaxDatetime>;
const Clamping = z.object({
  /** DAY, WEEK or MONTH. */
  target: template,
  target_details: z.record(z.string(), z.unknown()).nullish(),
});
export type Clamping = z.infer<typeof Clamping>;
export const DatetimeBasedCursor = z.object({
  type: z.literal('DatetimeBasedCursor'),
  /** The class in Python that adds its values to requests. */
  python: z.record(z.string(), z.unknown()).optional(),
  cursor_field: template,
  datetime_format: z.string(),
  cursor_datetime_formats: z.array(z.string()).default([]),
  start_datetime: MinMaxDatetime,
  end_datetime: MinMaxDatetime.nullish(),
  step: template.nullish(),
  cursor_granularity: z.string().nullish(),
  lookback_window: template.nullish(),
  start_time_option: RequestOption.nullish(),
  end_time_option: RequestOption.nullish(),
  partition_field_start: template.nullish(),
  partition_field_end: template.nullish(),
  is_client_side_incremental: z.boolean().nullish(),
  is_compare_strictly: z.boolean().nullish(),
  clamping: Clamping.nullish(),
  is_data_feed: z.boolean().nullish(),
  global_substream_cursor: z.boolean().nullish(),
  $parameters: parameters,
});
export type DatetimeBasedCursor = z.infer<typeof DatetimeBasedCursor>;
export const IncrementingCountCursor = z.object({
  type: z.literal('IncrementingCountCursor'),
  cursor_field: template,
  start_value: z.union([z.number(), template]).nullish(),
  start_value_option: RequestOption.nullish(),
  $parameters: parameters,
});
export type IncrementingCountCursor = z.infer<typeof IncrementingCountCursor>;
export type IncrementalSync = DatetimeBasedCursor | IncrementingCountCursor;
