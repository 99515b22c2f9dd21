import { z } from 'zod';
import { instant, whole } from '../../api/wire-types.ts';

export const LEVELS = ['info', 'warning', 'error'] as const;

export const RunLogLine = z
  .object({
    id: z.string().meta({ description: 'Stable and unique within the run.' }),
    at: instant(),
    level: z.enum(LEVELS),
    code: z.string().meta({ description: 'What happened, such as `claimed`, or the code of the error or warning.' }),
    message: z.string(),
    stream_run_id: z.string().nullable().meta({ description: 'Null for lines about the whole run.' }),
    stream_name: z.string().nullable(),
    namespace: z.string().nullable(),
    attempt: whole().nullable(),
  })
  .meta({ id: 'RunLogLine' });
export type RunLogLine = z.infer<typeof RunLogLine>;
