import { Button, Select, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { client, trpc } from '../../api.ts';
import { BASE_PATH } from '../../base-path.ts';
import { useCurrentUser } from '../../current-user.ts';
import { Failure } from '../../components/failure.tsx';
import { Icon } from '../../components/icon.tsx';
import { Page, Section } from '../../components/page.tsx';
import { signedOut, signOut } from '../../session.ts';
import { useAction } from '../../use-action.ts';
import { ApiKeySection } from './api-key-section.tsx';
import { QuietHoursSection } from './quiet-hours-section.tsx';
import { SessionsSection } from './sessions-section.tsx';
import { AvatarUpload } from './avatar-upload.tsx';

/** The signed-in user: API key, personal details, picture and permissions. */
export default function ProfilePage() {
  const me = useCurrentUser();
  const leave = async () => {
    const elsewhere = await signOut();
    signedOut.set('not_authenticated');
    // A full load, so that nothing of the session stays in memory.
    window.location.assign(elsewhere ?? `${BASE_PATH}/`);
  };
  return (
    <Page
      title="Profile"
      lead={me.email}
      actions={
        <Button variant="default" leftSection={<Icon name="signOut" size={16} />} onClick={() => void leave()}>
          Sign out
        </Button>
      }
    >
      <ApiKeySection />
      <SessionsSection />
      <div className="columns">
        <PersonalDetails />
        <Section title="Picture">
          <AvatarUpload />
        </Section>
      </div>
      <QuietHoursSection />
      <Section title="Permissions" lead={me.roles.map(({ name }) => name).join(', ') || 'No roles'}>
        <ul className="chips">
          {me.permissions.map((permission) => (
            <li key={permission}>
              <code>{permission}</code>
            </li>
          ))}
        </ul>
      </Section>
    </Page>
  );
}

const ZONES = ['UTC', ...Intl.supportedValuesOf('timeZone')];

function PersonalDetails() {
  const me = useCurrentUser();
  const [name, setName] = useState(me.full_name);
  const [timezone, setTimezone] = useState(me.timezone);
  const update = useAction(trpc.users.update, {
    done: 'Profile saved',
    failed: null,
    undo: {
      input: async ({ user_id }) => {
        const { full_name, timezone: zone } = await client.users.me.query();
        return { user_id, full_name, timezone: zone };
      },
      isCurrent: async (saved) => {
        const now = await client.users.me.query();
        return now.full_name === saved.full_name && now.timezone === saved.timezone;
      },
    },
  });
  const isChanged = name.trim() !== me.full_name || timezone !== me.timezone;
  const save = (event: FormEvent) => {
    event.preventDefault();
    update.mutate({ user_id: me.id, full_name: name.trim(), timezone });
  };
  return (
    <Section title="Personal details">
      <form className="stack" onSubmit={save}>
        <TextInput label="Name" withAsterisk value={name} onChange={(event) => setName(event.currentTarget.value)} />
        <Select
          label="Time zone"
          data={ZONES}
          searchable
          limit={50}
          value={timezone}
          onChange={setTimezone}
          clearable
          placeholder={`As in the browser (${Intl.DateTimeFormat().resolvedOptions().timeZone})`}
        />
        {update.error && <Failure error={update.error} />}
        <div className="form-foot">
          <Button type="submit" disabled={!isChanged || name.trim() === ''} loading={update.isPending}>
            Save changes
          </Button>
        </div>
      </form>
    </Section>
  );
}
