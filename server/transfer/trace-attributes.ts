import type { SpanAttributes } from '../platform/tracing/span.ts';
import type { Attempt } from './attempt.ts';

/** What the spans of a run have in common. */
export const runAttributes = ({ run }: Attempt['claim']): SpanAttributes => ({
  'pipeline.account_id': run.account_id,
  'pipeline.connection_id': run.connection_id,
  'pipeline.connection_run_id': run.id,
});

/** Those of the span of one stream. */
export const streamAttributes = (claim: Attempt['claim']): SpanAttributes => ({
  ...runAttributes(claim),
  'pipeline.stream_run_id': claim.stream_run.id,
  'pipeline.stream': claim.stream_run.stream_name,
  'pipeline.attempt': claim.stream_run.attempt,
});
