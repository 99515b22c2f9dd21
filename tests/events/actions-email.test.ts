import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { users } from '../../db/schema/index.ts';
import { deliveringService } from '../support/deliveries.ts';
import { connectionId } from '../support/firings.ts';
import { uniqueName } from '../support/resources.ts';
import { mailServer } from '../support/smtp.ts';
import { until } from '../support/until.ts';

const mail = await mailServer();
const { service, deps, call, trigger, emitEvent, evaluate, failed, settled, deliveriesOf } = await deliveringService({
  SMTP_URL: mail.url,
  MAIL_FROM: 'Pipelines <pipelines@example.test>',
});
const [administrator] = await deps.db.select().from(users).where(eq(users.id, service.user_id));
const to = administrator!.email;

describe('send_email', () => {
  const action = (rest: object = {}) => ({
    actions: [
      {
        type: 'send_email',
        recipients: [to],
        subject_template: 'Failed: {{ connection_name }}',
        body_template: 'Because {{ error_message }}',
        ...rest,
      },
    ],
  });
  const mailsOf = (id: string) => mail.mails.filter(({ raw }) => raw.includes(id));

  test('reaches users of the account through a real mail server', async () => {
    const created = await trigger(action());
    await failed(created);
    const [delivery] = await settled(created);
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 1, error: null });
    const [sent, ...more] = mailsOf(delivery!.id);
    expect(more).toEqual([]);
    expect(sent).toMatchObject({ from: 'pipelines@example.test', to: [to] });
    expect(sent?.raw).toContain('Subject: Failed: Orders');
    expect(sent?.raw.toLowerCase()).toContain(`x-delivery-id: ${delivery!.id}`);
    expect(sent?.raw).toContain('Because The source is down');
  });

  test('escapes values in HTML, and keeps them out of its headers', async () => {
    const created = await trigger(
      action({ body_template: '<p>{{ error_message }}</p>', subject_template: 'A {{ error_message }}' }),
    );
    const nasty = '<img src=x>\r\nBcc: evil@example.test';
    await emitEvent('connection_failed', { connection_id: connectionId(), payload: { error_message: nasty } });
    await evaluate();
    const [delivery] = await settled(created);
    const [sent] = mailsOf(delivery!.id);
    expect(sent?.to).toEqual([to]);
    expect(sent?.raw).toContain('<p>&lt;img src=x&gt;');
    expect(sent?.raw.split('\r\n\r\n')[0]).not.toMatch(/^Bcc:/m);
  });

  test('is retried after a temporary refusal, and fails after a permanent one', async () => {
    mail.refuse.set(to, 451);
    const created = await trigger(action());
    await failed(created);
    await until(async () => ((await deliveriesOf(created))[0]?.attempts ?? 0) >= 2);
    mail.refuse.clear();
    expect(await settled(created)).toMatchObject([{ status: 'delivered' }]);
    mail.refuse.set(to, 550);
    const other = await trigger(action());
    await failed(other);
    expect(await settled(other)).toMatchObject([{ status: 'failed', attempts: 1 }]);
    mail.refuse.clear();
  });

  test('skips recipients who have left the account since', async () => {
    const { body: leaver } = await call('POST', '/users', {
      email: 'leaver@example.test',
      full_name: 'Leaver',
      send_invitation: false,
    });
    const created = await trigger(action({ recipients: ['leaver@example.test'] }));
    expect((await call('DELETE', `/users/${leaver.id}`)).status).toBe(204);
    await failed(created);
    const [delivery] = await settled(created);
    expect(delivery).toMatchObject({ status: 'failed', attempts: 1 });
    expect(delivery?.error).toStartWith('no_recipients');
  });

  test('400: recipients outside the account', async () => {
    const body = {
      name: uniqueName('trigger'),
      rule: 'event == "connection_failed"',
      ...action({ recipients: [to, 'stranger@example.test'] }),
    };
    const answer = await call('POST', '/automation/triggers', body);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({
      code: 'invalid_reference',
      field: 'actions.0.recipients',
      recipients: ['stranger@example.test'],
    });
  });
});
