import { z } from 'zod';
import { type InputParser, inputParser } from './request-parser.ts';

const NOTHING = z.strictObject({});

/** The input of a procedure without an endpoint, with the same checks and 422 responses as endpoints. */
export const rpcInput = <Body extends z.ZodObject>(body: Body): InputParser<z.input<Body>, z.output<Body>> =>
  inputParser<z.input<Body>, z.output<Body>>({
    params: NOTHING,
    query: NOTHING,
    query_key: null,
    body,
    body_key: null,
  });
