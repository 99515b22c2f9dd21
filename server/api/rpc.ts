import { z } from 'zod';
import { procedure } from './procedure.ts';
import { inputParser } from './request-parser.ts';
import type { ProcedureDocs } from './endpoint-meta.ts';

const NOTHING = z.strictObject({});

/**
 * Declares a procedure that tRPC alone serves, with the same checks and 422 responses as endpoints:
 * `read.concat(rpc(RunById, { summary: … }))`.
 */
export function rpc<Body extends z.ZodObject>(body: Body, docs: Omit<ProcedureDocs, 'input'>) {
  return procedure.meta({ rpc: { ...docs, input: body } }).input(
    inputParser<z.input<Body>, z.output<Body>>({
      params: NOTHING,
      query: NOTHING,
      query_key: null,
      body,
      body_key: null,
    }),
  );
}
