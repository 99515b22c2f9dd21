import '../../../contract/parameters.ts';
import { text } from './shown-at.ts';

export const recordElement = text(1000)
  .regex(/^\/?[^\s/@#*]+(\/[^\s/@#*]+)*$/, 'Enter names of elements, such as catalog/book')
  .optional()
  .meta({
    label: 'Record element',
    directs_secrets: false,
    description:
      'The element that is one row in XML files, by its path from the root. Default: the outermost element that repeats',
    placeholder: 'catalog/book',
    group: 'stream',
  });
