import { SchemaChangedError } from '../../contract/errors.ts';

/**
 * For a table that discovery does not find: it hides those that the user may not read, as one that is gone.
 * @param asked a SELECT of nothing from it
 * @throws ConnectorError when the table is there, but refused
 */
export const goneOrRefused = (asked: Promise<unknown>): Promise<null> =>
  asked.then(
    () => null,
    (error: unknown) => {
      if (error instanceof SchemaChangedError) return null;
      throw error;
    },
  );
