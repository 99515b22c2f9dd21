import { z } from 'zod';
import { rest } from '../../../api/endpoint.ts';
import { act, read, router } from '../../../api/procedure.ts';
import {
  AdvancedSequenceSchema,
  AdvanceSequencesRequest,
  LogMarkSchema,
  LogProgressQuery,
  LogProgressSchema,
} from './schema.ts';
import { advanceSequences } from './sequences.ts';
import { logProgress, markLog } from './log-position.ts';

export const cutOverRouter = router({
  mark: act('connections.run')
    .concat(
      rest('POST', '/connections/{connection_id}/log_marks', {
        operation_id: 'mark_log',
        summary: "Return the current position of the source's log",
        description:
          'A continuous run commits the positions of all streams soon after it has come past this one. Ask `log_progress` for it.',
        errors: [400],
        addition: true,
      }),
    )
    .output(LogMarkSchema)
    .mutation(({ ctx, input }) => markLog(ctx, input)),
  progress: read
    .concat(
      rest('GET', '/connections/{connection_id}/log_progress', {
        operation_id: 'get_log_progress',
        summary: 'Get whether a position of the log is applied at the destination',
        description: 'Once it is, the destination has every transaction that was committed before the position.',
        query: LogProgressQuery,
        errors: [400],
        addition: true,
      }),
    )
    .output(LogProgressSchema)
    .query(({ ctx, input }) => logProgress(ctx, input)),
  advanceSequences: act('connections.run')
    .concat(
      rest('POST', '/connections/{connection_id}/sequences/advance', {
        operation_id: 'advance_sequences',
        summary: "Set the destination's sequences and identity columns to values that the source has not given",
        description:
          'Sequences of the selected streams, and those of their schemas that belong to no column. No sequence is set back, so that the call can be repeated.',
        body: AdvanceSequencesRequest.nullable(),
        body_key: 'request',
        errors: [400],
        addition: true,
      }),
    )
    .output(z.array(AdvancedSequenceSchema))
    .mutation(({ ctx, input }) => advanceSequences(ctx, input)),
});
