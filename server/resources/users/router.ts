import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { act, publicAct, read, router, write } from '../../api/procedure.ts';
import { rpc } from '../../api/rpc.ts';
import { UsageRange } from '../../api/usage-range.ts';
import { uploadAvatar } from './avatar.ts';
import { AvatarForm, AvatarUploadResponse } from './avatar-schema.ts';
import { createUser } from './create.ts';
import { acceptInvitation, inviteUser } from './invitation.ts';
import {
  AcceptedInvitation,
  AcceptInvitationRequest,
  ApiKeySchema,
  CreateKeyRequest,
  Invitation,
  ListKeysRequest,
  NewApiKey,
  RevokeKeyRequest,
  RotatedKey,
  RotateKeyRequest,
} from './key-schema.ts';
import { listKeys, revokeKey, rotateKey } from './keys.ts';
import { createKey } from './program-keys.ts';
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
import { CreateServiceAccountRequest, ServiceAccountSchema } from './service-account-schema.ts';
import { createServiceAccount, listServiceAccounts } from './service-accounts.ts';
import { ConfirmSessionRequest, ListSessionsRequest, SessionSchema } from './session-schema.ts';
import { confirmSession, endListedSession, listSessions } from './sessions.ts';
import { updateUser } from './update.ts';

export const usersRouter = router({
  list: read
    .concat(
      rest('GET', '/users', {
        operation_id: 'list_users',
        summary: 'List users, newest first',
        description: 'Deleted users are not listed.',
      }),
    )
    .output(z.array(UserSchemaWithMeTagged))
    .query(({ ctx }) => listUsers(ctx)),
  create: write('users.manage')
    .concat(
      rest('POST', '/users', {
        operation_id: 'create_user',
        summary: 'Create a user and an invitation link',
        description: 'The invitation link is returned only here and works once, within 7 days.',
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
        description: 'Works with every valid key.',
      }),
    )
    .output(ExpandedUserSchema)
    .query(({ ctx }) => getMe(ctx)),
  get: read
    .concat(
      rest('GET', '/users/{user_id}', {
        operation_id: 'get_user',
        summary: 'Get a user',
        description: 'Users of the same account only.',
      }),
    )
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
        description: 'The caller cannot delete itself. At least one active user remains an administrator.',
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
        description: 'The time of completion stays until a step is undone.',
        body: OnboardingStateSchema,
      }),
    )
    .output(OnboardingStateResponse)
    .mutation(({ ctx, input }) => putOnboardingState(ctx, input)),
  invite: write('users.manage')
    .concat(
      rest('POST', '/users/{user_id}/invitation', {
        operation_id: 'invite_user',
        summary: 'Create a new invitation link for a user',
        description: 'Replaces an earlier link. The link is returned only here and works once, within 7 days.',
        addition: true,
        errors: [400],
      }),
    )
    .output(Invitation)
    .mutation(({ ctx, input }) => inviteUser(ctx, input)),
  acceptInvitation: publicAct
    .concat(
      rest('POST', '/invitations/accept', {
        operation_id: 'accept_invitation',
        summary: 'Accept an invitation; returns an API key',
        description: 'Needs no key. The token is the part of the link after `#token=`. The key is returned only here.',
        addition: true,
        public: true,
        body: AcceptInvitationRequest,
        errors: [400],
      }),
    )
    .output(AcceptedInvitation)
    .mutation(({ ctx, input }) => acceptInvitation(ctx, input)),
  rotateKey: write(null)
    .concat(
      rest('POST', '/users/me/api_keys', {
        operation_id: 'rotate_api_key',
        summary: 'Create a new API key for the caller',
        description:
          'The key of the call keeps working for `grace_hours`; all other keys of the caller without a name end at once. A key with a name is replaced by one with the same name, scopes and lifetime. The new key is returned only here.',
        addition: true,
        status: 201,
        body: RotateKeyRequest,
        errors: [400],
      }),
    )
    .output(RotatedKey)
    .mutation(({ ctx, input }) => rotateKey(ctx, input)),
  createKey: write(null)
    .concat(
      rest('POST', '/api_keys', {
        operation_id: 'create_api_key',
        summary: 'Create an API key with a name, scopes and an expiry',
        description:
          'For programs: the caller may have several. With `user_id`, a key of a service account; needs `users.manage`. A key can do what its user may do at that moment, limited to its scopes; reads need no permission. The key is returned only here.',
        addition: true,
        status: 201,
        body: CreateKeyRequest,
        errors: [400, 403, 404],
      }),
    )
    .output(NewApiKey)
    .mutation(({ ctx, input }) => createKey(ctx, input)),
  listServiceAccounts: read
    .concat(
      rest('GET', '/service_accounts', {
        operation_id: 'list_service_accounts',
        summary: 'List service accounts, newest first',
        description: 'Users for programs, which the list of users does not contain.',
        addition: true,
      }),
    )
    .output(z.array(ServiceAccountSchema))
    .query(({ ctx }) => listServiceAccounts(ctx)),
  createServiceAccount: write('users.manage')
    .concat(
      rest('POST', '/service_accounts', {
        operation_id: 'create_service_account',
        summary: 'Create a user for a program',
        description: 'It has roles and keys, but cannot sign in to the console. Edit and delete it as a user.',
        addition: true,
        status: 201,
        body: CreateServiceAccountRequest,
        errors: [400],
      }),
    )
    .output(ServiceAccountSchema)
    .mutation(({ ctx, input }) => createServiceAccount(ctx, input)),
  confirmSession: write(null)
    .concat(
      rpc(ConfirmSessionRequest, {
        summary: "Confirm the caller's identity in a session of the console",
        description: 'Sensitive changes need a recent confirmation. Only with the cookie of a session.',
      }),
    )
    .output(z.void())
    .mutation(({ ctx, input }) => confirmSession(ctx, input)),
  listSessions: read
    .concat(
      rest('GET', '/users/me/sessions', {
        operation_id: 'list_sessions',
        summary: "List the caller's open sessions of the console, latest use first",
        description: 'With `user_id`, the sessions of another user; needs `users.manage`.',
        addition: true,
        query: ListSessionsRequest,
        errors: [403, 404],
      }),
    )
    .output(z.array(SessionSchema))
    .query(({ ctx, input }) => listSessions(ctx, input)),
  endSession: write(null)
    .concat(
      rest('DELETE', '/users/me/sessions/{session_id}', {
        operation_id: 'end_session',
        summary: 'End a session of the console',
        description: 'A session of another user needs `users.manage`. The API key of the session stays valid.',
        addition: true,
        status: 204,
        errors: [403],
      }),
    )
    .output(z.void())
    .mutation(({ ctx, input }) => endListedSession(ctx, input)),
  listKeys: read
    .concat(
      rest('GET', '/users/me/api_keys', {
        operation_id: 'list_api_keys',
        summary: 'List API keys of the caller, newest first',
        description: 'With `user_id`, the keys of another user; needs `users.manage`. Never shows the keys themselves.',
        addition: true,
        query: ListKeysRequest,
        errors: [403, 404],
      }),
    )
    .output(z.array(ApiKeySchema))
    .query(({ ctx, input }) => listKeys(ctx, input)),
  revokeKey: write(null)
    .concat(
      rpc(RevokeKeyRequest, {
        summary: 'Revoke an API key',
        description: 'As `DELETE /users/me/api_keys/{api_key_id}`. Requests with the key fail from now on.',
      }),
    )
    .output(z.void())
    .mutation(({ ctx, input }) => revokeKey(ctx, input)),
});

/** REST only: tRPC cannot carry files, and names the key in its input `key_id`. */
export const avatarRouter = router({
  revokeApiKey: write(null)
    .concat(
      rest('DELETE', '/users/me/api_keys/{api_key_id}', {
        operation_id: 'revoke_api_key',
        summary: 'Revoke an API key',
        description: 'A key of another user needs `users.manage`. The key of the call itself can only be rotated.',
        addition: true,
        status: 204,
        errors: [400, 403],
      }),
    )
    .output(z.void())
    .mutation(({ ctx, input }) => revokeKey(ctx, { key_id: input.api_key_id.toLowerCase() })),
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
