import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { Confirm } from '../../components/confirm.tsx';
import { pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Page, Section } from '../../components/page.tsx';
import { labelOf, Status } from '../../components/status.tsx';
import { useAction } from '../../use-action.ts';
import { RoleDialog } from './role-dialog.tsx';
import type { Role } from '../../answers.ts';

/** Built-in roles and those of the account. */
export default function RolesPage() {
  const roles = useQuery(trpc.roles.list.queryOptions());
  const mayManage = usePermission('roles.manage');
  const [edited, setEdited] = useState<Role | 'new' | null>(null);
  return (
    <Page
      title="Roles"
      lead="Named sets of permissions. A user has the permissions of all assigned roles."
      actions={
        <Button
          leftSection={<Icon name="add" size={16} />}
          disabled={!mayManage}
          title={mayManage ? undefined : 'Requires the roles.manage permission'}
          onClick={() => setEdited('new')}
        >
          New role
        </Button>
      }
    >
      <QueryView query={roles}>
        {(rows) => (
          <div className="columns">
            {rows.map((role) => (
              <RoleCard key={role.id} role={role} mayManage={mayManage} edit={() => setEdited(role)} />
            ))}
          </div>
        )}
      </QueryView>
      {edited && <RoleDialog role={edited === 'new' ? null : edited} onClose={() => setEdited(null)} />}
    </Page>
  );
}

/** `connections` of `connections.create`. */
const objectOf = (permission: string) => permission.split('.')[0] ?? permission;

function RoleCard({ role, mayManage, edit }: { role: Role; mayManage: boolean; edit: () => void }) {
  const remove = useAction(trpc.roles.delete, {
    done: `Role ${role.name} deleted`,
    failed: `Role ${role.name} not deleted`,
    refresh: [trpc.roles.list],
  });
  const isEditable = !role.is_system && mayManage;
  return (
    <Section
      title={role.name}
      lead={`${role.users_count === 0 ? 'No users' : pluralize(role.users_count, 'user')}${role.description ? `. ${role.description}` : ''}`}
      actions={
        role.is_system ? (
          <Status value="system" label="Built-in" />
        ) : (
          isEditable && (
            <>
              <Button size="xs" variant="default" onClick={edit} aria-label={`Edit ${role.name}`}>
                Edit
              </Button>
              <Confirm
                title={`Delete role “${role.name}”?`}
                action="Delete role"
                onConfirm={() => remove.mutate({ role_id: role.id })}
                trigger={(open) => (
                  <Button size="xs" variant="subtle" color="red" onClick={open} aria-label={`Delete ${role.name}`}>
                    Delete
                  </Button>
                )}
              >
                A role cannot be deleted while users have it.
              </Confirm>
            </>
          )
        )
      }
    >
      {role.permissions.length === 0 ? (
        <p className="dimmed">Read-only access</p>
      ) : (
        <dl className="role-permissions">
          {[...Map.groupBy(role.permissions, objectOf)].map(([object, permissions]) => (
            <div key={object}>
              <dt>{labelOf(object)}</dt>
              <dd>{permissions.map((one) => one.slice(object.length + 1)).join(', ')}</dd>
            </div>
          ))}
        </dl>
      )}
    </Section>
  );
}
