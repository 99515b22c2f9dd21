import { z } from 'zod';
import { type InputParser, inputParser } from './request-parser.ts';

const NOTHING = z.strictObject({});

/** The input of a procedure that has no endpoint: the same checks and the same 422 as everywhere. */
export const rpcInput = <Body extends z.ZodObject>(body: Body): InputParser<z.input<Body>, z.output<Body>> =>
  inputParser<z.input<Body>, z.output<Body>>({ params: NOTHING, query: NOTHING, body, body_key: null });
