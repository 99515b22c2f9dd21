import { z } from 'zod';
import '../../../contract/parameters.ts';

/** Settings of the other locations keep their values, so that users can switch back and forth. */
export const shownAt = (...equals: string[]) => ({ visible_when: { parameter: 'location', equals } });
export const text = (max = 1000) => z.string().min(1).max(max);
