import { z } from 'zod';
import { idInBody, text } from '../../api/wire-types.ts';

export const ValidationRequest = z
  .strictObject({
    parameter_name: text(1, 255),
    value: z.unknown().meta({ description: 'Any JSON value. The mask of a secret stands for the stored value.' }),
    parameters: z
      .record(z.string(), z.unknown())
      .nullish()
      .meta({ description: 'Values of other parameters, which override the stored ones.' }),
    connection_id: idInBody().nullish(),
    stream_id: idInBody().nullish(),
  })
  .meta({ id: 'ValidationRequest', examples: [{ parameter_name: 'rows', value: 10000 }] });
export type ValidationRequest = z.infer<typeof ValidationRequest>;

const Finding = z.object({ code: z.string(), message: z.string() }).meta({ id: 'ValidationFinding' });
export type Finding = z.infer<typeof Finding>;

export const ValidationResult = z
  .object({
    is_valid: z.boolean(),
    parameter_name: z.string(),
    errors: z.array(Finding),
    warnings: z.array(Finding),
    normalized_value: z.unknown().meta({ description: 'The value as it would be stored. Null when invalid.' }),
    checked_remotely: z.boolean().meta({ description: 'Whether the value was checked against the remote system.' }),
    duration_ms: z.number(),
  })
  .meta({ id: 'ValidationResult' });
export type ValidationResult = z.infer<typeof ValidationResult>;
