import { z } from 'zod';
import { ERROR_CODES } from '../platform/error-codes.ts';

const ValidationError = z
  .object({
    loc: z.array(z.union([z.string(), z.int()])).meta({
      description: 'Location: `body`, `query`, `path` or `header`, followed by keys and indexes.',
    }),
    msg: z.string(),
    type: z.string().meta({ examples: ['missing', 'string_type', 'extra_forbidden'] }),
  })
  .meta({ id: 'ValidationError' });

export const HTTPValidationError = z.object({ detail: z.array(ValidationError) }).meta({ id: 'HTTPValidationError' });

const ErrorCode = z
  .union([z.enum(ERROR_CODES), z.string()])
  .meta({ id: 'ErrorCode', description: 'Machine-readable and stable. Later versions may add codes.' });
const code = ErrorCode.meta({ examples: ['not_found'] });

export const ErrorSchema = z
  .looseObject({ detail: z.string().meta({ description: 'Human-readable message.' }), code })
  .meta({ id: 'ErrorSchema', description: 'Further keys give context, such as `connection_ids` or `limit`.' });

export const StructuredErrorSchema = z
  .looseObject({ detail: z.union([z.string(), z.looseObject({ code: z.string(), message: z.string() })]), code })
  .meta({ id: 'StructuredErrorSchema' });
