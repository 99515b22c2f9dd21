import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { useMay } from '../../current-user.ts';
import { Confirm } from '../../components/confirm.tsx';
import { plural } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Page, Section } from '../../components/page.tsx';
import { Status, wordsOf } from '../../components/status.tsx';
import { useAction } from '../../use-action.ts';
import { RoleDialog } from './role-dialog.tsx';

export type Role = RouterOutputs['roles']['list'][number];

/** Roles: the service's own, and those of the account. */
export default function RolesPage() {
  const roles = useQuery(trpc.roles.list.queryOptions());
  const mayManage = useMay('roles.manage');
  const [edited, setEdited] = useState<Role | 'new' | null>(null);
  return (
    <Page
      title="Roles"
      lead="Permissions under a name. Users may do what all of their roles allow together."
      actions={
        <Button
          leftSection={<Icon name="add" size={16} />}
          disabled={!mayManage}
          title={mayManage ? undefined : 'Takes the permission roles.manage'}
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
    done: `The role ${role.name} was deleted`,
    failed: `The role ${role.name} was not deleted`,
    refresh: [trpc.roles.list],
  });
  const own = !role.is_system && mayManage;
  return (
    <Section
      title={role.name}
      lead={`${role.users_count === 0 ? 'Nobody has it' : plural(role.users_count, 'user')}${role.description ? `. ${role.description}` : ''}`}
      actions={
        role.is_system ? (
          <Status value="system" label="of the service" />
        ) : (
          own && (
            <>
              <Button size="xs" variant="default" onClick={edit} aria-label={`Edit ${role.name}`}>
                Edit
              </Button>
              <Confirm
                title={`Delete the role ${role.name}?`}
                action="Delete"
                onConfirm={() => remove.mutate({ role_id: role.id })}
                trigger={(open) => (
                  <Button size="xs" variant="subtle" color="red" onClick={open} aria-label={`Delete ${role.name}`}>
                    Delete
                  </Button>
                )}
              >
                A role that somebody has cannot be deleted.
              </Confirm>
            </>
          )
        )
      }
    >
      {role.permissions.length === 0 ? (
        <p className="dimmed">Reads everything, changes nothing.</p>
      ) : (
        <dl className="role-permissions">
          {[...Map.groupBy(role.permissions, objectOf)].map(([object, permissions]) => (
            <div key={object}>
              <dt>{wordsOf(object)}</dt>
              <dd>{permissions.map((one) => one.slice(object.length + 1)).join(', ')}</dd>
            </div>
          ))}
        </dl>
      )}
    </Section>
  );
}
