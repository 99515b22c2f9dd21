import { rest } from '../../endpoint.ts';
import { read, router } from '../../procedure.ts';
import { ExpandedUserSchema } from './schema.ts';
import { getMe } from './service.ts';

export const usersRouter = router({
  me: read
    .concat(rest('GET', '/users/me', { summary: 'The calling user, with account, permissions and key' }))
    .output(ExpandedUserSchema)
    .query(({ ctx }) => getMe(ctx)),
});
