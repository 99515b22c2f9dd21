import type { z } from 'zod';

/** An output parser that hands the answer on as it is. The document reads `schema` off it. */
interface ExactAnswer<Schema extends z.ZodType> {
  (value: unknown): z.output<Schema>;
  schema: Schema;
}

let checked = false;

/** From now on exact answers are held to their schema, extra keys included. The tests' preload calls it. */
export function checkExactAnswers(): void {
  checked = true;
}

/**
 * For answers that are read often and whose presenter names every key: types the procedure and the document, but is
 * not parsed on every request. Parsing a connection costs 40 of the 270 µs of CPU of reading it. That nothing beyond
 * the schema leaves is proved by the tests; all other answers go through their schema, which strips what is not named.
 */
export function exactAnswer<Schema extends z.ZodType>(schema: Schema): ExactAnswer<Schema> {
  const parse = (value: unknown): z.output<Schema> => {
    if (!checked) return value as z.output<Schema>;
    const parsed = schema.parse(value);
    if (!Bun.deepEquals(parsed, value)) throw new Error('An exact answer has more than its schema');
    return parsed;
  };
  return Object.assign(parse, { schema });
}

/** The schema that a procedure declared as its output, exact or not. */
export const schemaOfAnswer = (output: unknown): z.ZodType =>
  typeof output === 'function' && 'schema' in output ? (output.schema as z.ZodType) : (output as z.ZodType);
