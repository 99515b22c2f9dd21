import { z } from 'zod';
import { VERIFICATION_STATUSES } from '../../../db/schema/index.ts';
import { count, instant, text, UserReference, whole } from '../../api/wire-types.ts';

const uuid = () => z.string().meta({ format: 'uuid' });
const reason = () => z.object({ code: z.string(), message: z.string() }).nullable();

export const VerifiedStreamSchema = z
  .object({
    stream_id: uuid(),
    stream_name: z.string(),
    namespace: z.string().nullable(),
    destination_table: z.string(),
    status: z.enum(['equal', 'different', 'not_compared']),
    reason: reason().meta({ description: 'Why the stream was not compared, or not repaired.' }),
    key: z.array(z.string()).meta({ description: 'Columns of the key. Empty: rows were compared as a multiset.' }),
    columns: z.array(z.string()).meta({ description: 'Columns of the destination that were compared.' }),
    columns_not_compared: z.array(z.object({ name: z.string(), reason: z.string() })).meta({
      description: 'With one of the reasons masked_with_key, transformed, converted, describes_change, no_common_form.',
    }),
    source_rows: count(),
    destination_rows: count(),
    ranges: whole(),
    ranges_different: whole(),
    missing: count().meta({ description: 'Keys that only the source has.' }),
    extra: count().meta({ description: 'Keys that only the destination has.' }),
    different: count().meta({ description: 'Keys whose rows differ.' }),
    changed_since: count().meta({
      description: 'Keys that differ because the source has changed since the stream was loaded. Not counted above.',
    }),
    keeps_deleted: z.boolean().meta({
      description: 'Rows deleted at the source stay in the destination, so that extra keys are not a difference.',
    }),
    is_partial: z.boolean().meta({ description: 'The search ended early. The numbers are lower limits.' }),
    differences: z
      .array(
        z.object({
          kind: z.enum(['missing', 'extra', 'different']),
          key: z.array(z.string()),
          changed_since: z.boolean().nullable().meta({ description: 'Null: unknown.' }),
        }),
      )
      .meta({ description: 'The first 100.' }),
    repaired: count(),
    source_at: instant().nullable(),
    source_position: z.string().nullable(),
    destination_at: instant().nullable(),
    duration_ms: count(),
  })
  .meta({ id: 'VerifiedStreamSchema' });

export const VerificationSchema = z
  .object({
    id: uuid(),
    connection_id: uuid(),
    connection_run_id: uuid().nullable().meta({ description: 'The last run before the verification.' }),
    status: z.enum(VERIFICATION_STATUSES).meta({
      description: '`succeeded`: no stream differs. `failed`: a stream differs, or there is an error.',
    }),
    stream_names: z.array(z.string()).nullable(),
    repair: z.boolean(),
    streams: z.array(VerifiedStreamSchema),
    error: reason(),
    triggered_by: UserReference.nullable(),
    created_at: instant(),
    started_at: instant().nullable(),
    finished_at: instant().nullable(),
  })
  .meta({ id: 'VerificationSchema' });
export type VerificationSchema = z.infer<typeof VerificationSchema>;

export const VerifyRequest = z
  .strictObject({
    stream_names: z
      .array(text(1, 1000))
      .min(1)
      .max(1000)
      .nullable()
      .default(null)
      .meta({ description: 'Null: all selected streams.' }),
    repair: z.boolean().default(false).meta({
      description:
        'Loads the rows that differ again, in one commit of the destination, and compares once more. Not while a run is active.',
    }),
  })
  .meta({ id: 'VerifyRequest' });
export type VerifyRequest = z.infer<typeof VerifyRequest>;
