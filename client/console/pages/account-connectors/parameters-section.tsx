import { Button } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { Failure } from '../../components/failure.tsx';
import { NameField } from '../../components/name-field.tsx';
import { Section } from '../../components/page.tsx';
import { TunnelFields } from '../../ssh-tunnel/tunnel-fields.tsx';
import { useTunnelForm } from '../../ssh-tunnel/use-tunnel-form.ts';
import { checkFields } from '../../parameter-form/check-fields.ts';
import { ParameterForm } from '../../parameter-form/parameter-form.tsx';
import { useParameterForm } from '../../parameter-form/use-parameter-form.ts';
import { useAction } from '../../use-action.ts';
import { Consent } from './consent.tsx';
import { notifySaved } from './use-test.ts';
import { ConnectorHelp } from './connector-help.tsx';
import type { AccountConnector } from '../../answers.ts';

interface ParametersSectionProps {
  connector: AccountConnector;
  entry: RouterOutputs['connectors']['get'];
}

/** Name, parameters and tunnel of an existing source or destination. Saving tests it again. */
export function ParametersSection(props: ParametersSectionProps) {
  // The revision as key restarts the form from the stored values after each save.
  return <ParametersForm key={props.connector.revision} {...props} />;
}

function ParametersForm({ connector, entry }: ParametersSectionProps) {
  const { id, connector_type, parameters: stored, ssh_tunnel: storedTunnel, revision } = connector;
  const mayUpdate = usePermission(`${connector_type}s.update`);
  const [name, setName] = useState(connector.name);
  const [oauth_consent_id, setConsent] = useState<string | null>(null);
  const tunnel = useTunnelForm(storedTunnel);
  const form = useParameterForm(entry.parameters, { stored, moved: tunnel.isMoved ? ['SSH tunnel'] : [] });
  const update = useAction(trpc.account_connectors.update, { failed: null, after: notifySaved });
  const parameters = form.changed();
  const isRenamed = name.trim() !== connector.name;
  const ssh_tunnel = tunnel.changed();
  const isChanged =
    oauth_consent_id !== null || isRenamed || ssh_tunnel !== undefined || Object.keys(parameters).length > 0;
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (!checkFields(event.currentTarget, [form.check, tunnel.check])) return;
    update.mutate(
      {
        account_connector_id: id,
        revision,
        ...(isRenamed && { name: name.trim() }),
        ...(Object.keys(parameters).length > 0 && { parameters }),
        ...(ssh_tunnel && { ssh_tunnel }),
        ...(oauth_consent_id !== null && { oauth_consent: { id: oauth_consent_id } }),
      },
      { onError: ({ message, context }) => void tunnel.refuse(context.field, message) },
    );
  };
  return (
    <Section title="Parameters" lead={entry.description}>
      <form className="stack" onSubmit={save} noValidate>
        <div className="fields">
          <NameField value={name} disabled={!mayUpdate} onChange={setName} />
        </div>
        <ParameterForm
          form={form}
          stored={stored}
          account_connector_id={mayUpdate ? id : undefined}
          disabled={!mayUpdate}
        />
        {entry.capabilities.oauth_consent && (
          <Consent
            request={() => ({ account_connector_id: id, parameters })}
            onCompleted={setConsent}
            disabled={!mayUpdate}
          />
        )}
        {entry.capabilities.ssh_tunnel && <TunnelFields form={tunnel} stored={storedTunnel} disabled={!mayUpdate} />}
        <ConnectorHelp connector={entry} values={form.values} />
        {update.error && <Failure title="Parameters not saved" error={update.error} />}
        <div className="form-foot">
          <Button type="submit" loading={update.isPending} disabled={!mayUpdate || !isChanged || name.trim() === ''}>
            Test and save
          </Button>
        </div>
      </form>
    </Section>
  );
}
