import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { act, procedure, read, router, write } from '../../api/procedure.ts';
import { rpcInput } from '../../api/rpc-input.ts';
import { UsageRange } from '../../api/usage-range.ts';
import { uploadAvatar } from './avatar.ts';
import { AvatarForm, AvatarUploadResponse } from './avatar-schema.ts';
import { createUser } from './create.ts';
import { acceptInvitation, inviteUser } from './invitation.ts';
import {
  AcceptedInvitation,
  AcceptInvitationRequest,
  ApiKeySchema,
  Invitation,
  InviteRequest,
  ListKeysRequest,
  RevokeKeyRequest,
  RotatedKey,
  RotateKeyRequest,
} from './key-schema.ts';
import { listKeys, revokeKey, rotateKey } from './keys.ts';
import { getMe } from './current-user.ts';
import { putOnboardingState } from './onboarding.ts';
import {
  CreateUserRequest,
  ExpandedUserSchema,
  OnboardingStateResponse,
  OnboardingStateSchema,
  UpdateUserRequest,
  UserSchema,
  UserSchemaWithMeTagged,
} from './schema.ts';
import { deleteUser, getUser, listUsers } from './service.ts';
import { ConfirmSessionRequest, EndSessionRequest, ListSessionsRequest, SessionSchema } from './session-schema.ts';
import { confirmSession, endListedSession, listSessions } from './sessions.ts';
import { updateUser } from './update.ts';

export const usersRouter = router({
  list: read
    .concat(rest('GET', '/users', { operation_id: 'list_users', summary: 'List users, newest first' }))
    .output(z.array(UserSchemaWithMeTagged))
    .query(({ ctx }) => listUsers(ctx)),
  create: write('users.manage')
    .concat(
      rest('POST', '/users', {
        operation_id: 'create_user',
        summary: 'Create a user and an invitation link',
        status: 201,
        query: UsageRange,
        query_key: 'usage',
        body: CreateUserRequest,
        errors: [400, 402],
      }),
    )
    .output(UserSchema)
    .mutation(({ ctx, input }) => createUser(ctx, input)),
  me: read
    .concat(
      rest('GET', '/users/me', {
        operation_id: 'get_current_user',
        summary: 'Get the calling user with account, permissions and key',
      }),
    )
    .output(ExpandedUserSchema)
    .query(({ ctx }) => getMe(ctx)),
  get: read
    .concat(rest('GET', '/users/{user_id}', { operation_id: 'get_user', summary: 'Get a user' }))
    .output(UserSchema)
    .query(({ ctx, input }) => getUser(ctx, input)),
  update: write(null)
    .concat(
      rest('POST', '/users/{user_id}', {
        operation_id: 'update_user',
        summary: 'Edit, disable or enable a user',
        description: 'Users may edit their own name, time zone and locale; everything else needs `users.manage`.',
        body: UpdateUserRequest,
        errors: [400, 402, 403],
      }),
    )
    .output(UserSchema)
    .mutation(({ ctx, input }) => updateUser(ctx, input)),
  delete: act('users.manage')
    .concat(
      rest('DELETE', '/users/{user_id}', {
        operation_id: 'delete_user',
        summary: 'Delete a user and revoke their keys',
        status: 204,
        errors: [400],
      }),
    )
    .output(z.void())
    .mutation(({ ctx, input }) => deleteUser(ctx, input)),
  putOnboardingState: write(null)
    .concat(
      rest('PUT', '/users/me/onboarding-state', {
        operation_id: 'update_onboarding_state',
        summary: "Replace the state of the caller's onboarding",
        body: OnboardingStateSchema,
      }),
    )
    .output(OnboardingStateResponse)
    .mutation(({ ctx, input }) => putOnboardingState(ctx, input)),
  invite: write('users.manage')
    .input(rpcInput(InviteRequest))
    .output(Invitation)
    .mutation(({ ctx, input }) => inviteUser(ctx, input)),
  acceptInvitation: procedure
    .input(rpcInput(AcceptInvitationRequest))
    .output(AcceptedInvitation)
    .mutation(({ ctx, input }) => acceptInvitation(ctx, input)),
  rotateKey: write(null)
    .input(rpcInput(RotateKeyRequest))
    .output(RotatedKey)
    .mutation(({ ctx, input }) => rotateKey(ctx, input)),
  confirmSession: write(null)
    .input(rpcInput(ConfirmSessionRequest))
    .output(z.void())
    .mutation(({ ctx, input }) => confirmSession(ctx, input)),
  listSessions: read
    .input(rpcInput(ListSessionsRequest))
    .output(z.array(SessionSchema))
    .query(({ ctx, input }) => listSessions(ctx, input)),
  endSession: write(null)
    .input(rpcInput(EndSessionRequest))
    .output(z.void())
    .mutation(({ ctx, input }) => endListedSession(ctx, input)),
  listKeys: read
    .input(rpcInput(ListKeysRequest))
    .output(z.array(ApiKeySchema))
    .query(({ ctx, input }) => listKeys(ctx, input)),
  revokeKey: write(null)
    .input(rpcInput(RevokeKeyRequest))
    .output(z.void())
    .mutation(({ ctx, input }) => revokeKey(ctx, input)),
});

/** REST only: tRPC cannot carry files. */
export const avatarRouter = router({
  uploadAvatar: act(null)
    .concat(
      rest('POST', '/users/me/avatar', {
        operation_id: 'upload_avatar',
        summary: "Upload the caller's picture",
        description: 'PNG, JPEG or WebP, 2 MiB and 4096 × 4096 pixels at most; kept as a WebP of 256 × 256.',
        body: AvatarForm,
        consumes: 'multipart/form-data',
        errors: [400],
      }),
    )
    .output(AvatarUploadResponse)
    .mutation(({ ctx, input }) => uploadAvatar(ctx, input)),
});
