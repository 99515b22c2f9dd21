import { z } from 'zod';

const ValidationError = z
  .object({
    loc: z.array(z.union([z.string(), z.int()])).meta({
      description: 'Where: `body`, `query`, `path` or `header`, then keys and positions.',
    }),
    msg: z.string(),
    type: z.string().meta({ examples: ['missing', 'string_type', 'extra_forbidden'] }),
  })
  .meta({ id: 'ValidationError' });

export const HTTPValidationError = z.object({ detail: z.array(ValidationError) }).meta({ id: 'HTTPValidationError' });

const code = z.string().meta({ description: 'For programs; stable.', examples: ['not_found'] });

export const ErrorSchema = z
  .looseObject({ detail: z.string().meta({ description: 'For people.' }), code })
  .meta({ id: 'ErrorSchema', description: 'More keys name what is concerned, such as `connection_ids` or `limit`.' });

export const StructuredErrorSchema = z
  .looseObject({ detail: z.union([z.string(), z.looseObject({ code: z.string(), message: z.string() })]), code })
  .meta({ id: 'StructuredErrorSchema' });
