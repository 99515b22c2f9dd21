import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { read, router, write } from '../../api/procedure.ts';
import { CreateSavedViewRequest, SavedView, SavedViewQuery, UpdateSavedViewRequest } from './schema.ts';
import { createSavedView, deleteSavedView, listSavedViews, updateSavedView } from './service.ts';

export const savedViewsRouter = router({
  list: read
    .concat(
      rest('GET', '/saved_views', {
        operation_id: 'list_saved_views',
        summary: 'List saved views: your own first, then by name',
        description: 'Your own views and those that are shared with the account.',
        addition: true,
        query: SavedViewQuery,
      }),
    )
    .output(z.array(SavedView))
    .query(({ ctx, input }) => listSavedViews(ctx, input)),
  create: write(null)
    .concat(
      rest('POST', '/saved_views', {
        operation_id: 'create_saved_view',
        summary: 'Save the filters of a list under a name',
        description:
          'For yourself, or with `is_shared` for every user of the account, which needs `connections.update`. A user has at most 100 views of their own, an account 100 shared ones.',
        status: 201,
        addition: true,
        body: CreateSavedViewRequest,
        errors: [400, 403],
      }),
    )
    .output(SavedView)
    .mutation(({ ctx, input }) => createSavedView(ctx, input)),
  update: write(null)
    .concat(
      rest('POST', '/saved_views/{saved_view_id}', {
        operation_id: 'update_saved_view',
        summary: 'Rename, overwrite or share a view',
        description:
          'Views of other users are not found unless they are shared. Changing a shared view needs `connections.update`; only the user who created it can stop sharing it.',
        addition: true,
        body: UpdateSavedViewRequest,
        errors: [400, 403],
      }),
    )
    .output(SavedView)
    .mutation(({ ctx, input }) => updateSavedView(ctx, input)),
  delete: write(null)
    .concat(
      rest('DELETE', '/saved_views/{saved_view_id}', {
        operation_id: 'delete_saved_view',
        summary: 'Delete a view',
        description: 'Deleting a shared view needs `connections.update`.',
        status: 204,
        addition: true,
        errors: [403],
      }),
    )
    .output(z.void())
    .mutation(({ ctx, input }) => deleteSavedView(ctx, input)),
});
