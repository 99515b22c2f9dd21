import { expect, test } from 'bun:test';
import { visit } from '../support/browser.ts';
import { keepUndo, noticed, startConsole, undoOf } from '../support/console.ts';
import { runEnded } from '../support/pipeline.ts';
import { makerOf } from '../support/resources.ts';
import { shoot } from '../support/screenshots.ts';
import { SLACK_TOKEN, slackChannel, slackServer } from '../support/slack-server.ts';
import { until } from '../support/until.ts';
import { webhookReceiver } from '../support/webhook-receiver.ts';

const receiver = webhookReceiver();
const slack = slackServer();
slack.channels.push(slackChannel('C1', 'alerts'), slackChannel('C2', 'general'));
const site = await startConsole({ EGRESS_ALLOW: [receiver.allow, slack.allow] });
const { service, api } = site;
const make = makerOf(api.call);
const source = await make.source({ rows: 5, fault: 'data' });
const failing = await make.connection({ source_id: source.id, name: 'Orders to warehouse' });
await make.connector('destination', 'slack', { bot_token: SLACK_TOKEN, api_url: slack.api_url });
const { page, complaints } = await site.signedIn('/console/triggers');

async function fail(): Promise<void> {
  const { body } = await api.call('POST', `/connections/${failing.id}/run`);
  expect((await runEnded(service, body)).status).toBe('failed');
}

test('a person has quiet hours of their own', async () => {
  await visit(page, '/console/profile');
  const section = page.getByRole('region', { name: 'Quiet hours' });
  await section.getByLabel('Quiet from').fill('20:00');
  await section.getByLabel('Quiet until').fill('09:00');
  await section.getByRole('combobox', { name: 'Sent during quiet hours' }).click();
  await page.getByRole('option', { name: 'High and critical' }).click();
  await section.getByRole('button', { name: 'Save quiet hours' }).click();
  await noticed(page, 'Quiet hours saved');
  const { body: me } = await api.call('GET', '/users/me');
  const stored = { quiet_from: '20:00', quiet_until: '09:00', urgent_severity: 'high' };
  expect(me.notification_preferences).toEqual(stored);
  await shoot(page, 'profile-quiet-hours');
  await section.getByLabel('Quiet from').fill('');
  await section.getByLabel('Quiet until').fill('');
  await section.getByRole('button', { name: 'Save quiet hours' }).click();
  await until(async () => (await api.call('GET', '/users/me')).body.notification_preferences.quiet_from === null);
});

test('a trigger: its rule fixed, tested on past events, created, and fired', async () => {
  await fail();
  await visit(page, '/console/triggers');
  await page.getByText('Connection auto-disabled').waitFor();
  await shoot(page, 'triggers');
  // One step sends the problems of all system triggers to one place.
  await page.getByText('Webhook', { exact: true }).click();
  await page.getByRole('textbox', { name: 'URL' }).fill(`${receiver.url}/problems`);
  await page.getByRole('button', { name: 'Send test message' }).click();
  await noticed(page, 'Test message sent');
  expect(receiver.to('/problems')).toHaveLength(1);
  await page.getByRole('button', { name: 'Set up notifications' }).click();
  await page.getByText('1 action', { exact: true }).first().waitFor();
  expect(await page.getByRole('heading', { name: 'Set up notifications' }).count()).toBe(0);
  await page.getByLabel('Quiet from').fill('22:00');
  await page.getByLabel('Quiet until').fill('07:00');
  await page.getByRole('button', { name: 'Save notification settings' }).click();
  await noticed(page, 'Notification settings saved');
  const { body: settings } = await api.call('GET', '/automation/notification_settings');
  expect(settings).toMatchObject({ quiet_from: '22:00', quiet_until: '07:00', digest_at: '08:00' });
  await shoot(page, 'triggers-notifications');
  // At night they would hold the messages of the tests below.
  await api.call('POST', '/automation/notification_settings', { quiet_from: null, quiet_until: null });
  await page.getByRole('link', { name: 'New trigger' }).first().click();
  await page.getByRole('textbox', { name: 'Name' }).fill('Failures of finance');
  const rule = page.getByRole('textbox', { name: 'Rule', exact: true });
  await rule.fill('event == "connection_failed"\n  && retry_cont > 3');
  await page.getByText('Line 2, column 6').waitFor();
  await page.getByText('unknown_variable').waitFor();
  await shoot(page, 'trigger-error');
  await rule.fill('event == "connection_failed" && ');
  await page.getByRole('button', { name: 'connection_name' }).click();
  await rule.press('End');
  await rule.pressSequentially(' == "Orders to warehouse"');
  expect(await rule.inputValue()).toBe('event == "connection_failed" && connection_name == "Orders to warehouse"');
  await page.getByText('Can match connection failed').waitFor();
  await page.getByText(/^1 of \d+ events match$/).waitFor();
  await page.getByText('Sample event', { exact: true }).click();
  await page.getByText('The event matches', { exact: true }).waitFor();
  await page
    .getByRole('textbox', { name: 'Event', exact: true })
    .fill('{"event": "connection_failed", "connection_name": "Another"}');
  await page.getByText('The event does not match').waitFor();
  await page.getByRole('button', { name: 'Add action' }).click();
  await page.getByRole('menuitem', { name: 'Call a webhook' }).click();
  await page.getByRole('textbox', { name: 'URL' }).fill('ftp://nowhere');
  await page.getByRole('button', { name: 'Create trigger' }).click();
  await page.locator('.actions [data-refused]').waitFor();
  await page.getByRole('textbox', { name: 'URL' }).fill(`${receiver.url}/failures`);
  await shoot(page, 'trigger');
  await page.getByRole('button', { name: 'Create trigger' }).click();
  await page.getByRole('heading', { name: 'Failures of finance', level: 1 }).waitFor();
  await keepUndo(page);
  await page.getByRole('textbox', { name: 'Name' }).fill('Failures of sales');
  await page.getByRole('button', { name: 'Save changes' }).click();
  await undoOf(page, 'Trigger saved').waitFor();
  await page.getByRole('heading', { name: 'Failures of sales', level: 1 }).waitFor();
  await undoOf(page, 'Trigger saved').click();
  await noticed(page, 'Undone: Trigger saved');
  await page.getByRole('heading', { name: 'Failures of finance', level: 1 }).waitFor();
  await fail();
  await until(() => receiver.to('/failures').length > 0, { timeout_ms: 15_000 });
  await visit(page, '/console/triggers');
  await page.getByText('Fired once').first().waitFor();
  expect(complaints).toEqual([]);
}, 90_000);

test('a chat message goes to a channel that the chat lists', async () => {
  await visit(page, '/console/triggers/new');
  await page.getByRole('textbox', { name: 'Name' }).fill('Notify the chat');
  await page.getByRole('button', { name: 'Add action' }).click();
  await page.getByRole('menuitem', { name: 'Send a chat message' }).click();
  await page.getByRole('combobox', { name: 'Chat' }).click();
  await page.getByRole('option').first().click();
  await page.getByRole('combobox', { name: 'Channel' }).click();
  await page.getByRole('option', { name: /#alerts/ }).click();
  await page.getByRole('button', { name: 'Create trigger' }).click();
  await page.getByRole('heading', { name: 'Notify the chat', level: 1 }).waitFor();
  const { body } = await api.call('GET', '/automation/triggers');
  const made = body.find((one: { name: string }) => one.name === 'Notify the chat');
  expect(made.actions).toMatchObject([{ type: 'send_chat_message', channel_id: 'C1' }]);
  await page.getByRole('textbox', { name: 'Cooldown (min)' }).fill('30');
  await page.getByRole('button', { name: 'Save' }).click();
  await noticed(page, 'Trigger saved');
  await page.getByRole('button', { name: 'Delete trigger' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete trigger' }).click();
  await page.getByRole('heading', { name: 'Triggers', level: 1 }).waitFor();
  const after = await api.call('GET', `/automation/triggers/${made.id}`);
  expect(after.status).toBe(404);
}, 60_000);

test('a system trigger gets an action; a proactive one waits for the expected event', async () => {
  await visit(page, '/console/triggers');
  await page.getByRole('link', { name: 'Connection auto-disabled' }).click();
  await page.getByRole('button', { name: 'Add action' }).click();
  await page.getByRole('menuitem', { name: 'Pause the connection' }).click();
  expect(await page.getByRole('textbox', { name: 'Rule', exact: true }).isDisabled()).toBe(true);
  await page.getByRole('button', { name: 'Save' }).click();
  await noticed(page, 'Trigger saved');
  const actions = page.locator('.actions > li');
  // The action of the notifications, which were set up before, stays.
  expect(await actions.count()).toBe(2);
  await page.getByRole('link', { name: 'Triggers', exact: true }).first().click();
  await page.getByRole('heading', { name: 'Triggers', level: 1 }).waitFor();
  const { body: triggers } = await api.call('GET', '/automation/triggers?include_system=true');
  const { id, actions: stored } = triggers.find((one: { name: string }) => one.name === 'Connection auto-disabled');
  await api.call('POST', `/automation/triggers/${id}`, { actions: [...stored, { type: 'rerun_run', max_reruns: 1 }] });
  await page.getByRole('link', { name: 'Connection auto-disabled' }).click();
  await actions.nth(2).waitFor();
  await page.goto('/console/triggers/new');
  await page.getByRole('textbox', { name: 'Name' }).fill('The load does not end');
  await page.getByText('Event is missing').click();
  await page.getByRole('textbox', { name: 'Expected event' }).fill('event == "connection_succeeded"');
  await page.getByRole('button', { name: 'Add action' }).click();
  await page.getByRole('menuitem', { name: 'Retry the failed run' }).click();
  await page.getByRole('button', { name: 'Create trigger' }).click();
  await page.getByRole('heading', { name: 'The load does not end', level: 1 }).waitFor();
  const { body } = await api.call('GET', '/automation/triggers');
  expect(body.find((one: { name: string }) => one.name === 'The load does not end')).toMatchObject({
    posture: 'proactive',
    expect: 'event == "connection_succeeded"',
    within_seconds: 3600,
    actions: [{ type: 'rerun_run', max_reruns: 1 }],
  });
}, 60_000);

test('a case, by the link of its message: acknowledged, resolved, reopened', async () => {
  const { body } = await api.call('GET', '/automation/cases');
  const one = body.find((each: { trigger_name: string }) => each.trigger_name === 'Failures of finance');
  await visit(page, '/console/cases');
  await page.getByText(`#${one.number}`).waitFor();
  await shoot(page, 'cases');
  await visit(page, `/cases/${one.id}`);
  await page.locator('.timeline').getByText('opened').waitFor();
  await page.getByText('Call a webhook').waitFor();
  await page.getByText('delivered').first().waitFor();
  const status = async () => (await api.call('GET', `/automation/cases/${one.id}`)).body.status;
  for (const [button, state] of [
    ['Acknowledge', 'acknowledged'],
    ['Suppress', 'suppressed'],
    ['Resolve', 'resolved'],
    ['Reopen', 'open'],
  ] as const) {
    await page.getByRole('button', { name: button, exact: true }).click();
    await page
      .locator('.page-title .status')
      .getByText(new RegExp(`^${state}$`, 'i'))
      .waitFor();
    expect(await status()).toBe(state);
  }
  await shoot(page, 'case');
  await page.locator('.event').first().click();
  await page.getByRole('link', { name: 'View run' }).waitFor();
  expect(complaints).toEqual([]);
}, 60_000);

test('a trigger is enabled again by undoing; a case that was resolved meanwhile stays resolved', async () => {
  const opened = await site.signedIn('/console/triggers');
  await keepUndo(opened.page);
  await opened.page.getByRole('switch', { name: 'Enable Failures of finance' }).press('Space');
  await undoOf(opened.page, 'Failures of finance disabled').waitFor();
  const { body: triggers } = await api.call('GET', '/automation/triggers');
  const { id, enabled } = triggers.find(({ name }: { name: string }) => name === 'Failures of finance');
  expect(enabled).toBe(false);
  await undoOf(opened.page, 'Failures of finance disabled').click();
  await noticed(opened.page, 'Undone: Failures of finance disabled');
  expect((await api.call('GET', `/automation/triggers/${id}`)).body.enabled).toBe(true);

  const { body: cases } = await api.call('GET', `/automation/cases?trigger_id=${id}&status=open`);
  const [one] = cases;
  await visit(opened.page, `/cases/${one.id}`);
  const status = async () => (await api.call('GET', `/automation/cases/${one.id}`)).body.status;
  for (const meanwhile of [null, 'resolved'] as const) {
    await opened.page.getByRole('button', { name: 'Acknowledge', exact: true }).click();
    await undoOf(opened.page, `Case #${one.number} acknowledged`).waitFor();
    expect(await status()).toBe('acknowledged');
    if (meanwhile) await api.call('POST', `/automation/cases/${one.id}?status=${meanwhile}`);
    await undoOf(opened.page, `Case #${one.number} acknowledged`).click();
    await noticed(opened.page, meanwhile ? 'It has been changed since' : `Undone: Case #${one.number} acknowledged`);
    expect(await status()).toBe(meanwhile ?? 'open');
  }
  expect(opened.complaints).toEqual([]);
}, 60_000);

test('events are filtered, and the filters are in the address', async () => {
  await visit(page, '/console/events');
  await page.locator('.event').nth(3).waitFor();
  await shoot(page, 'events');
  await page.getByRole('combobox', { name: 'All categories' }).click();
  await page.getByRole('option', { name: 'Run', exact: true }).click();
  await page.getByRole('combobox', { name: 'All event types' }).click();
  await page.getByRole('option', { name: 'connection failed' }).click();
  await until(async () => {
    const kinds = await page.locator('.event code').allInnerTexts();
    return kinds.length > 0 && kinds.every((kind) => kind === 'connection_failed');
  });
  expect(new URL(page.url()).search).toBe('?category=run&event=connection_failed');
}, 60_000);

test('a user is invited, signs in by the link, and has only the permissions of the role', async () => {
  await visit(page, '/console/users');
  await page.getByRole('button', { name: 'Invite' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Email' }).fill('ada@example.org');
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Ada');
  await dialog.getByRole('button', { name: 'Invite' }).click();
  const confirmation = page.getByRole('dialog', { name: 'Confirm with your API key' });
  await confirmation.getByLabel('API key').fill(site.service.api_key);
  await confirmation.getByRole('button', { name: 'Confirm' }).click();
  await confirmation.waitFor({ state: 'detached' });
  const link = await dialog.getByRole('textbox', { name: 'Invitation link' }).inputValue();
  await shoot(page, 'users-invited');
  await dialog.getByRole('button', { name: 'Done' }).click();
  await page.getByText('ada@example.org').waitFor();
  const guest = await site.browser();
  await guest.page.goto(link);
  await guest.page.getByRole('button', { name: 'Accept invitation' }).click();
  await until(async () => {
    const { body } = await api.call('GET', '/users');
    return body.find((one: { email: string }) => one.email === 'ada@example.org').status === 'active';
  });
  await guest.page.locator('.sign-in-card button').last().click();
  await guest.page.getByRole('heading', { name: 'Overview' }).waitFor();
  await visit(guest.page, '/console/triggers');
  await guest.page.getByText('Connection auto-disabled').waitFor();
  expect(await guest.page.getByRole('link', { name: 'New trigger' }).count()).toBe(0);
  await visit(guest.page, '/console/connections/new');
  await guest.page.getByText('You do not have permission to create connections').waitFor();
}, 60_000);
