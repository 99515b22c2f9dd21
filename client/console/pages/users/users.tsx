import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Avatar } from '../../components/avatar.tsx';
import { pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Page } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';
import { InviteDialog } from './invite-dialog.tsx';
import { ServiceAccounts } from './service-accounts.tsx';
import { UserMenu } from './user-menu.tsx';
import type { User } from '../../answers.ts';

/** The users of the account, with their roles. */
export default function UsersPage() {
  const users = useQuery(trpc.users.list.queryOptions());
  const mayManage = usePermission('users.manage');
  const [isInviting, setInviting] = useState(false);
  return (
    <Page
      title="Users"
      lead={users.data && pluralize(users.data.length, 'user')}
      actions={
        <Button
          leftSection={<Icon name="add" size={16} />}
          disabled={!mayManage}
          title={mayManage ? undefined : 'Requires the users.manage permission'}
          onClick={() => setInviting(true)}
        >
          Invite user
        </Button>
      }
    >
      <QueryView query={users}>{(rows) => <Table users={rows} />}</QueryView>
      <ServiceAccounts />
      {isInviting && <InviteDialog onClose={() => setInviting(false)} />}
    </Page>
  );
}

const Table = ({ users }: { users: User[] }) => (
  <div className="card table-frame">
    <table className="table stacked">
      <thead>
        <tr>
          <th>User</th>
          <th>Status</th>
          <th>Roles</th>
          <th>Last active</th>
          <th>
            <span className="hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {users.map((user) => (
          <tr key={user.id}>
            <td>
              <div className="person">
                <Avatar name={user.full_name} url={user.avatar_url} />
                <div>
                  {user.full_name} {user.is_me && <span className="dimmed">(you)</span>}
                  <div className="dimmed">{user.email}</div>
                </div>
              </div>
            </td>
            <td data-label="Status">
              <Status value={user.status} />
            </td>
            <td data-label="Roles">
              {user.roles.map(({ name }) => name).join(', ') || <span className="dimmed">None</span>}
            </td>
            <td data-label="Last active">
              <RelativeTime at={user.last_api_request_at ?? user.last_login_at} never="Never" />
            </td>
            <td className="end">
              <UserMenu user={user} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
