import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { faultsOf } from '../support/browser.ts';
import { startConsole } from '../support/console.ts';
import { createPlainDatabase } from '../support/database.ts';
import { runEnded } from '../support/pipeline.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';
import { shoot } from '../support/screenshots.ts';
import { sshdMissing, startSshd } from '../support/sshd.ts';
import { until } from '../support/until.ts';

setDefaultTimeout(60_000);

const site = await startConsole();
const make = makerOf(site.api.call);
const sshd = await startSshd();
const warehouse = await createPlainDatabase();
afterAll(() => warehouse.drop());
const { page, complaints } = await site.signedIn('/console/profile');
const there = postgresParameters(warehouse.url);

const textbox = (name: string) => page.getByRole('textbox', { name, exact: true });
const tunnelSwitch = () => page.getByRole('switch', { name: 'Connect through an SSH tunnel' });
const alert = (title: string) => page.getByRole('alert').filter({ hasText: title });
const checks = () => page.getByRole('region', { name: 'Last test' }).getByRole('listitem');
const saved = async () => {
  const answered = page.waitForResponse((response) => response.url().includes('account_connectors.update'));
  await page.getByRole('button', { name: 'Test and save' }).click();
  expect((await answered).status()).toBe(200);
};
const enterPassword = () => page.getByLabel('Password', { exact: true }).fill(String(there.password));
const stored = async (name: string) => {
  const { body } = await site.api.call('GET', '/account_connectors?connector_type=destination');
  return body.find((one: { name: string }) => one.name === name);
};

/** The form of a new PostgreSQL destination with its database filled in. */
async function newWarehouse(name: string): Promise<void> {
  await page.goto('/console/destinations/new');
  await page.getByRole('searchbox', { name: 'Search connectors' }).fill('PostgreSQL');
  await page.locator('button.connector-card').first().click();
  await textbox('Name').fill(name);
  await textbox('Host').fill(String(there.host));
  await page.getByRole('textbox', { name: 'Port', exact: true }).fill(String(there.port));
  await textbox('Database').fill(String(there.database));
  await textbox('User name').fill(String(there.username));
  await page.getByLabel('Password', { exact: true }).fill(String(there.password));
}

/** Switches the tunnel on and fills in its form. @returns the line for authorized_keys that the page shows */
async function fillTunnel(username: string): Promise<string> {
  await tunnelSwitch().press('Space');
  await textbox('SSH server').fill(sshd.host);
  await textbox('SSH port').fill(String(sshd.port));
  await textbox('SSH user').fill(username);
  return page.getByRole('textbox', { name: /^Line for ~\/\.ssh\/authorized_keys/ }).inputValue();
}

describe.skipIf(sshdMissing !== null)('a destination behind an SSH server', () => {
  test('is created in one go: the key is there to copy, the line lets it in, the host key is stored', async () => {
    await newWarehouse('Behind');
    await tunnelSwitch().press('Space');
    await page.getByRole('button', { name: 'Test and save' }).click();
    await page.getByText('Enter the SSH server').waitFor();
    await page.getByText('Enter the SSH user').waitFor();
    await tunnelSwitch().press('Space');
    const line = await fillTunnel(sshd.username);
    expect(line).toMatch(/^restrict,port-forwarding ssh-ed25519 \S+ dp-\w{8}$/);
    await shoot(page, 'tunnel-new');
    sshd.authorize(line);
    await page.getByRole('button', { name: 'Test and save' }).click();
    await page.getByRole('heading', { name: 'Behind', level: 1 }).waitFor();
    await checks().filter({ hasText: 'SSH tunnel' }).getByText('passed').waitFor();
    await checks().filter({ hasText: 'Connection' }).getByText('passed').waitFor();
    expect(await textbox('Host key fingerprint').inputValue()).toBe(sshd.fingerprint);
    expect(await page.getByRole('radio', { name: 'Stored key' }).isChecked()).toBe(true);
    expect(line).toContain(await page.getByRole('textbox', { name: /^Line for/ }).inputValue());
    expect(await page.getByRole('button', { name: 'Test and save' }).isDisabled()).toBe(true);
    await shoot(page, 'tunnel-made');
    const { status, ssh_tunnel } = await stored('Behind');
    expect({ status, host_key: ssh_tunnel.host_key_fingerprint }).toEqual({
      status: 'active',
      host_key: sshd.fingerprint,
    });
  });

  test('a user that the SSH server refuses is reported as a fault of the tunnel, and fixed', async () => {
    await newWarehouse('Wrong user');
    sshd.authorize(await fillTunnel('nobody-of-that-name'));
    await page.getByRole('button', { name: 'Test and save' }).click();
    await alert('The SSH tunnel does not work').getByText('authorized_keys').waitFor();
    await checks().filter({ hasText: 'SSH tunnel' }).getByText('failed').waitFor();
    await checks().filter({ hasText: 'Connection' }).getByText('skipped').waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await shoot(page, 'tunnel-refused');
    await textbox('SSH user').fill(sshd.username);
    await saved();
    await alert('The SSH tunnel does not work').waitFor({ state: 'detached' });
    expect((await stored('Wrong user')).status).toBe('active');
  });

  test('a database that does not answer is not attributed to the tunnel', async () => {
    await page.getByRole('textbox', { name: 'Port', exact: true }).fill('1');
    await page.getByText('Enter again: Port changed').waitFor();
    await enterPassword();
    await saved();
    await alert('The database behind the tunnel does not respond')
      .getByText(`${String(there.host)}:1`, { exact: true })
      .waitFor();
    await checks().filter({ hasText: 'SSH tunnel' }).getByText('passed').waitFor();
    await checks().filter({ hasText: 'Connection' }).getByText('failed').waitFor();
    await page.getByRole('textbox', { name: 'Port', exact: true }).fill(String(there.port));
    await enterPassword();
    await saved();
    await alert('The database behind the tunnel').waitFor({ state: 'detached' });
  });

  test('another host key is shown beside the known one, and accepted only on confirmation', async () => {
    const known = sshd.fingerprint;
    await sshd.restart('new');
    await page.getByRole('button', { name: 'Test', exact: true }).click();
    const changed = alert('The host key of the SSH server has changed');
    await changed.getByText(known).waitFor();
    await changed.getByText(sshd.fingerprint).waitFor();
    expect((await stored('Wrong user')).ssh_tunnel.host_key_fingerprint).toBe(known);
    expect(await faultsOf(page)).toEqual([]);
    await shoot(page, 'tunnel-other-host-key');
    await changed.getByRole('button', { name: 'Accept new key' }).click();
    await page.getByRole('dialog').getByText(sshd.fingerprint).waitFor();
    const accept = page.getByRole('dialog').getByRole('button', { name: 'Accept new key' });
    expect(await accept.isDisabled()).toBe(true);
    await page.getByRole('dialog').getByLabel('Password', { exact: true }).fill(String(there.password));
    await accept.click();
    await changed.waitFor({ state: 'detached' });
    await until(async () => (await textbox('Host key fingerprint').inputValue()) === sshd.fingerprint);
    const { status, ssh_tunnel } = await stored('Wrong user');
    expect({ status, host_key: ssh_tunnel.host_key_fingerprint }).toEqual({
      status: 'active',
      host_key: sshd.fingerprint,
    });
  });

  test('an unreadable private key is reported at its field; the tunnel keeps its settings while it is off', async () => {
    await page.getByRole('radio', { name: 'Use your own key' }).check();
    await textbox('Private key').fill('ssh-ed25519 AAAA a public one');
    await page.getByRole('button', { name: 'Test and save' }).click();
    await page.locator('.mantine-Textarea-error').getByText('private_key cannot be read').waitFor();
    await tunnelSwitch().press('Space');
    await enterPassword();
    await saved();
    await checks().filter({ hasText: 'SSH tunnel' }).waitFor({ state: 'detached' });
    await checks().filter({ hasText: 'Connection' }).getByText('passed').waitFor();
    expect((await stored('Wrong user')).ssh_tunnel).toMatchObject({ enabled: false, username: sshd.username });
    await page.getByText('The tunnel settings are kept while it is off').waitFor();
  });

  test('a run that the tunnel fails says so, and leads to where it can be fixed', async () => {
    const source = await make.source({ rows: 5 });
    const destination_id = (await stored('Behind')).id;
    const connection = await make.connection({ source_id: source.id, destination_id });
    const { body: run_id } = await site.api.call('POST', `/connections/${connection.id}/run`);
    await runEnded(site.service, run_id);
    await page.goto(`/console/connections/${connection.id}/runs/${run_id}`);
    const failure = alert('ssh_host_key_changed');
    await failure.getByText('The SSH tunnel failed, not the database').waitFor();
    await failure.getByRole('link', { name: 'Open Behind' }).click();
    await page.getByRole('button', { name: 'Test', exact: true }).click();
    await alert('The host key of the SSH server has changed').waitFor();
  });

  test('a connector without tunnels offers none, and nothing was logged in the browser', async () => {
    await page.goto('/console/destinations/new');
    await page
      .locator('button.connector-card')
      .filter({ hasNotText: /PostgreSQL|MySQL|MariaDB/ })
      .first()
      .click();
    await page.getByRole('button', { name: 'Test and save' }).waitFor();
    expect(await tunnelSwitch().count()).toBe(0);
    expect(complaints).toEqual([]);
  });
});
