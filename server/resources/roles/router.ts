import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { read, router, write } from '../../api/procedure.ts';
import { addRoleUser, removeRoleUser } from './members.ts';
import { CreateRequest, RoleSchema, UpdateRequest } from './schema.ts';
import { createRole, deleteRole, getRole, listRoles, updateRole } from './service.ts';

export const rolesRouter = router({
  list: read
    .concat(
      rest('GET', '/roles', {
        operation_id: 'list_roles',
        summary: 'List roles: system roles first, then by name',
        description: 'Without the ids of users.',
      }),
    )
    .output(z.array(RoleSchema))
    .query(({ ctx }) => listRoles(ctx)),
  create: write('roles.manage')
    .concat(
      rest('POST', '/roles', {
        operation_id: 'create_role',
        summary: 'Create a role',
        description: 'Only permissions that the caller holds can be granted.',
        status: 201,
        body: CreateRequest,
        errors: [400, 402],
      }),
    )
    .output(RoleSchema)
    .mutation(({ ctx, input }) => createRole(ctx, input)),
  get: read
    .concat(
      rest('GET', '/roles/{role_id}', {
        operation_id: 'get_role',
        summary: 'Get a role and its users',
        description: 'With the ids of its users.',
      }),
    )
    .output(RoleSchema)
    .query(({ ctx, input }) => getRole(ctx, input)),
  update: write('roles.manage')
    .concat(
      rest('POST', '/roles/{role_id}', {
        operation_id: 'update_role',
        summary: 'Edit a role; system roles cannot be edited',
        description: 'The new permissions apply from the next request of its users on.',
        body: UpdateRequest,
        errors: [400],
      }),
    )
    .output(RoleSchema)
    .mutation(({ ctx, input }) => updateRole(ctx, input)),
  delete: write('roles.manage')
    .concat(
      rest('DELETE', '/roles/{role_id}', {
        operation_id: 'delete_role',
        summary: 'Delete a role that no user has',
        description: 'System roles cannot be deleted.',
        status: 204,
        errors: [400],
      }),
    )
    .output(z.void())
    .mutation(({ ctx, input }) => deleteRole(ctx, input)),
  addUser: write('roles.manage')
    .concat(
      rest('POST', '/roles/{role_id}/users/{user_id}', {
        operation_id: 'add_user_to_role',
        summary: 'Assign the role to a user',
        description: 'Only permissions that the caller holds can be granted. A user who has the role keeps it.',
        errors: [400],
      }),
    )
    .output(RoleSchema)
    .mutation(({ ctx, input }) => addRoleUser(ctx, input)),
  removeUser: write('roles.manage')
    .concat(
      rest('DELETE', '/roles/{role_id}/users/{user_id}', {
        operation_id: 'remove_user_from_role',
        summary: 'Remove the role from a user',
        description: 'At least one active user remains an administrator.',
        status: 204,
        errors: [400],
      }),
    )
    .output(z.void())
    .mutation(({ ctx, input }) => removeRoleUser(ctx, input)),
});
