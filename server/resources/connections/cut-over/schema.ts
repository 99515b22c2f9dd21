import { z } from 'zod';
import { count, text } from '../../../api/wire-types.ts';

export const LogMarkSchema = z
  .object({
    position: z.string().meta({ description: 'Position in the log of the source, such as an LSN or a GTID position.' }),
    open_writers: count().nullable().meta({
      description:
        'Open transactions that have written to the tables: their changes come after the position. Null: the source does not show them.',
    }),
  })
  .meta({ id: 'LogMarkSchema' });
export type LogMarkSchema = z.infer<typeof LogMarkSchema>;

export const LogProgressQuery = z.object({
  position: text(1, 1000)
    .optional()
    .meta({
      description: 'A position in the log of the source. Omitted: any.',
      examples: ['00000000/0195F1A8'],
    }),
});

/** Why a stream will not reach a position. */
export const NOT_FOLLOWED = ['not_followed', 'not_copied', 'parked'] as const;

export const LogProgressSchema = z
  .object({
    is_applied: z.boolean().meta({ description: 'All selected streams have reached the position.' }),
    rows_applied: count().meta({
      description: 'Rows that the newest 20 runs of the connection have loaded, updated and deleted, in total.',
    }),
    streams: z.array(
      z.object({
        stream_id: z.string().meta({ format: 'uuid' }),
        stream_name: z.string(),
        namespace: z.string().nullable(),
        is_applied: z.boolean(),
        reason: z.enum(NOT_FOLLOWED).nullable().meta({
          description:
            'Why a stream does not come closer: it is not read from the log, its table has not been copied yet, or it is parked.',
        }),
      }),
    ),
  })
  .meta({ id: 'LogProgressSchema' });
export type LogProgressSchema = z.infer<typeof LogProgressSchema>;

export const AdvanceSequencesRequest = z
  .strictObject({
    dry_run: z.boolean().default(false).meta({ description: 'Compares the sequences and sets nothing.' }),
  })
  .meta({ id: 'AdvanceSequencesRequest' });
export type AdvanceSequencesRequest = z.infer<typeof AdvanceSequencesRequest>;

const value = (description: string) => z.string().nullable().meta({ description });

export const AdvancedSequenceSchema = z
  .object({
    source_sequence: z.string(),
    columns: z.array(z.string()).meta({ description: 'Columns of the destination that take their values from it.' }),
    source_value: value('The last value that the source has given; null: none yet.'),
    destination_sequence: value('Null: the destination has none.'),
    value_before: value('The last value that the destination had given; null: none yet.'),
    value_after: value('The next value of the destination comes after this one and after those of the source.'),
    statement: value('Creates the sequence where it is missing.'),
  })
  .meta({ id: 'AdvancedSequenceSchema' });
export type AdvancedSequenceSchema = z.infer<typeof AdvancedSequenceSchema>;
