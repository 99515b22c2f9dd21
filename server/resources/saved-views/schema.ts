import { z } from 'zod';
import { VIEWED_PAGES } from '../../../db/schema/index.ts';
import { instant, readOnlyKeys, text, UserReference } from '../../api/wire-types.ts';

const ViewedPage = z.enum(VIEWED_PAGES).meta({ id: 'ViewedPage', description: 'The list that a view filters.' });

export const SavedView = z
  .object({
    id: z.string().meta({ format: 'uuid' }),
    page: ViewedPage,
    name: z.string(),
    query: z.string().meta({ description: 'The filters as in the address of the list in the console.' }),
    is_shared: z.boolean().meta({ description: 'Whether every user of the account sees the view.' }),
    created_by: UserReference,
    created_at: instant(),
    updated_at: instant(),
  })
  .meta({ id: 'SavedView' });
export type SavedView = z.infer<typeof SavedView>;

const MAX_QUERY_LENGTH = 2000;
/** The parameter by which an address of the console names a view. */
const VIEW = 'view';

/** One text for filters that are written in different ways, so that what was read can be written. */
function normalized(query: string): string {
  const given = [...new URLSearchParams(query)].filter(([name, value]) => value !== '' && name !== VIEW);
  return new URLSearchParams(given).toString();
}

const settings = {
  name: text(1, 100).trim().min(1),
  query: text(1, MAX_QUERY_LENGTH)
    .overwrite(normalized)
    .max(MAX_QUERY_LENGTH)
    .refine((query) => query !== '', 'At least one filter is required')
    .meta({ description: 'Such as `state=failing&tag=sales`. Filters without a value are left out.' }),
  is_shared: z.boolean().meta({ description: 'A shared view needs the permission `connections.update`.' }),
};

export const SavedViewQuery = z.object({
  page: ViewedPage.optional().meta({ description: 'Only views of this list.' }),
});
export type SavedViewQuery = z.infer<typeof SavedViewQuery>;

export const CreateSavedViewRequest = z
  .strictObject({ page: ViewedPage, ...settings, is_shared: settings.is_shared.default(false) })
  .meta({
    id: 'CreateSavedViewRequest',
    examples: [{ page: 'connections', name: 'Failing sales', query: 'state=failing&tag=sales', is_shared: true }],
  });
export type CreateSavedViewRequest = z.infer<typeof CreateSavedViewRequest>;

export const UpdateSavedViewRequest = z
  .strictObject({ ...z.object(settings).partial().shape, ...readOnlyKeys(SavedView, settings) })
  .refine((body) => Object.values(body).some((value) => value !== undefined), 'At least one field is required')
  .meta({
    id: 'UpdateSavedViewRequest',
    description: 'Omitted keys stay unchanged.',
    examples: [{ name: 'Failing pipelines of sales' }],
  });
export type UpdateSavedViewRequest = z.infer<typeof UpdateSavedViewRequest>;
