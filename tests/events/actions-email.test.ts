import { afterEach, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { auditEvents, connectionRuns, users } from '../../db/schema/index.ts';
import { deliverActionJob } from '../../server/automation/delivery/deliver.ts';
import { quietUntil } from '../../server/pipeline/quiet-hours.ts';
import { sendDailyDigests } from '../../server/worker/daily-digest.ts';
import { deliveringService } from '../support/deliveries.ts';
import { connectionId } from '../support/firings.ts';
import { uniqueName } from '../support/resources.ts';
import { mailServer } from '../support/smtp.ts';
import { until } from '../support/until.ts';

const mail = await mailServer();
const { service, deps, call, trigger, emitEvent, evaluate, failed, settled, deliveriesOf, make } =
  await deliveringService({
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

  test('has the use of the password in SMTP_URL in the audit log, once a day for all mails', async () => {
    for (let mails = 0; mails < 2; mails += 1) {
      const created = await trigger(action());
      await failed(created);
      await settled(created);
    }
    const uses = await deps.db.select().from(auditEvents).where(eq(auditEvents.resource_id, 'SMTP_URL'));
    const days = new Set(uses.map(({ occurred_at }) => occurred_at.slice(0, 10)));
    expect(uses.length).toBe(days.size);
    const kind = { kind: 'secret_use', action: 'send_email', actor_type: 'system' };
    expect(uses[0]).toMatchObject({ ...kind, account_id: null, details: { host: new URL(mail.url).host } });
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

describe('quiet hours', () => {
  // Dates to come: the queue itself goes by the clock of the machine.
  const clock = deps.now;
  const settings = (body: object) => call('POST', '/automation/notification_settings', body);
  const none = { quiet_from: null, quiet_until: null, timezone: null, urgent_severity: 'critical', digest_at: null };
  afterEach(async () => {
    deps.now = clock;
    expect((await settings(none)).status).toBe(200);
  });
  const message = (more: object = {}) => ({
    actions: [{ type: 'send_email', recipients: [to], subject_template: 's', body_template: 'b' }],
    ...more,
  });
  const held = async (of: { id: string }) => {
    await until(async () => (await deliveriesOf(of))[0]?.held_until != null);
    return (await deliveriesOf(of))[0]!;
  };
  const nightIn = (zone: string) => ({ quiet_from: '22:00', quiet_until: '07:00', timezone: zone });

  test('hold a message until their end, in the zone of the account; an urgent one is sent at once', async () => {
    deps.now = () => new Date('2099-06-10T21:30:00Z');
    expect((await settings(nightIn('Europe/Berlin'))).body).toMatchObject({
      quiet_now_until: '2099-06-11T05:00:00.000Z',
    });
    const [usual, urgent] = [
      await trigger(message({ severity: 'high' })),
      await trigger(message({ severity: 'critical' })),
    ];
    await failed(usual);
    await failed(urgent);
    expect(await settled(urgent)).toMatchObject([{ status: 'delivered' }]);
    const waiting = await held(usual);
    expect(waiting).toMatchObject({ status: 'pending', attempts: 0, held_until: '2099-06-11T05:00:00.000Z' });
    deps.now = () => new Date('2099-06-11T05:00:00Z');
    await deliverActionJob(deps, waiting.id, new AbortController().signal);
    expect(await settled(usual)).toMatchObject([{ status: 'delivered', attempts: 1 }]);
  });

  test('let go of what they hold when they are switched off', async () => {
    deps.now = () => new Date('2099-06-10T23:30:00Z');
    await settings(nightIn('UTC'));
    const created = await trigger(message());
    await failed(created);
    await held(created);
    await settings({ quiet_from: null, quiet_until: null });
    expect(await settled(created)).toMatchObject([{ status: 'delivered' }]);
  });

  describe('of a person', () => {
    const NIGHT = { quiet_from: '22:00', quiet_until: '07:00' };
    const change = (id: string, notification_preferences: object) =>
      call('POST', `/users/${id}`, { notification_preferences });
    const sleeper = async () => {
      const email = `${crypto.randomUUID()}@example.test`;
      const about = { email, full_name: 'Sleeper', send_invitation: false, timezone: 'Asia/Tokyo' };
      const { body } = await call('POST', '/users', about);
      expect((await change(body.id, NIGHT)).status).toBe(200);
      return { id: body.id as string, email };
    };
    const mailed = (id: string) => mail.mails.filter(({ raw }) => raw.includes(id)).map((one) => one.to);
    const toBoth = (email: string) => [
      { type: 'send_email', recipients: [to, email], subject_template: 's', body_template: 'b' },
    ];

    test('hold an email for that person alone, in the zone of the person', async () => {
      deps.now = () => new Date('2099-06-10T14:00:00Z');
      const { email } = await sleeper();
      const created = await trigger(message({ severity: 'high', actions: toBoth(email) }));
      await failed(created);
      const waiting = await held(created);
      const until_morning = { held_until: '2099-06-10T22:00:00.000Z', next_attempt_at: '2099-06-10T22:00:00.000Z' };
      expect(waiting).toMatchObject({ status: 'pending', attempts: 0, delivered_to: [to], ...until_morning });
      expect(mailed(waiting.id)).toEqual([[to]]);
      await deliverActionJob(deps, waiting.id, new AbortController().signal);
      expect(mailed(waiting.id)).toEqual([[to]]);
      deps.now = () => new Date('2099-06-10T22:00:00Z');
      await deliverActionJob(deps, waiting.id, new AbortController().signal);
      expect(await settled(created)).toMatchObject([{ status: 'delivered', attempts: 1, error: null }]);
      expect(mailed(waiting.id)).toEqual([[to], [email]]);
    });

    test('do not hold an urgent email; let go of what they hold when they are switched off', async () => {
      deps.now = () => new Date('2099-06-10T14:00:00Z');
      const { id, email } = await sleeper();
      const urgent = await trigger(message({ severity: 'critical', actions: toBoth(email) }));
      await failed(urgent);
      const [sent] = await settled(urgent);
      expect(mailed(sent!.id).flat().toSorted()).toEqual([to, email].toSorted());
      const usual = await trigger(
        message({ actions: [{ ...toBoth(email)[0], recipients: [email] }], severity: 'high' }),
      );
      await failed(usual);
      expect(await held(usual)).toMatchObject({ delivered_to: [], attempts: 0 });
      await change(id, { quiet_from: null, quiet_until: null });
      const [delivery] = await settled(usual);
      expect(mailed(delivery!.id)).toEqual([[email]]);
    });
  });

  test.each([
    // The clock goes from 02:00 to 03:00 on 29 March, and from 03:00 to 02:00 on 25 October 2026.
    ['in winter', '22:00', '07:00', '2026-01-15T23:00:00Z', '2026-01-16T06:00:00Z'],
    ['before they begin', '22:00', '07:00', '2026-01-15T20:59:59Z', null],
    ['at their end', '22:00', '07:00', '2026-01-16T06:00:00Z', null],
    ['within a day', '12:00', '13:30', '2026-07-01T10:15:00Z', '2026-07-01T11:30:00Z'],
    ['in the night that is short', '22:00', '07:00', '2026-03-28T23:00:00Z', '2026-03-29T05:00:00Z'],
    ['to a time that is skipped', '22:00', '02:30', '2026-03-28T23:00:00Z', '2026-03-29T01:00:00Z'],
    ['within the time that is skipped', '02:10', '02:40', '2026-03-29T01:00:00Z', null],
    ['in the night that is long', '22:00', '07:00', '2026-10-24T22:00:00Z', '2026-10-25T06:00:00Z'],
    ['to a time that comes twice', '22:00', '02:30', '2026-10-25T00:00:00Z', '2026-10-25T00:30:00Z'],
    ['once that time has passed', '22:00', '02:30', '2026-10-25T01:10:00Z', null],
  ])('follow the clock in Berlin: %s', (_when, ...[quiet_from, quiet_until, now, end]) => {
    const found = quietUntil({ timezone: 'Europe/Berlin', quiet_from, quiet_until }, new Date(now));
    expect(found?.toISOString() ?? null).toBe(end === null ? null : new Date(end).toISOString());
  });

  test('are not waited for by a test message', async () => {
    const tests = (body: object) => call('POST', '/automation/notification_tests', body);
    deps.now = () => new Date('2099-06-10T23:30:00Z');
    await settings(nightIn('UTC'));
    const created = await trigger(
      message({
        actions: [
          { type: 'pause_connection' },
          { type: 'send_email', recipients: [to], subject_template: 'About {{ connection_name }}', body_template: 'b' },
        ],
      }),
    );
    expect((await tests({ trigger_id: created.id })).body).toEqual([
      { type: 'send_email', is_sent: true, error: null },
    ]);
    expect(mail.mails.at(-1)?.raw).toContain('Subject: Test: About Orders to warehouse');
    expect(await deliveriesOf(created)).toEqual([]);
    mail.refuse.set(to, 550);
    const { status, body } = await tests({ action: message().actions[0] });
    mail.refuse.clear();
    expect([status, body]).toMatchObject([200, [{ is_sent: false, error: { code: 'mail_refused' } }]]);
  });

  test('the daily digest says once a day what happened, by the channels that were set up', async () => {
    deps.now = () => new Date('2099-06-09T21:00:00Z');
    await settings({ timezone: 'Europe/Berlin' });
    const action = { type: 'send_email', recipients: [to], subject_template: 's', body_template: 'b' };
    await call('POST', '/automation/notifications', { action, daily_digest: true });
    const { body: shown } = await call('GET', '/automation/notification_settings');
    expect(shown).toMatchObject({ digest_at: '08:00', next_digest_at: '2099-06-10T06:00:00.000Z' });
    const { id: connection_id } = await make.connection({ name: 'Late night' });
    const queued_at = '2099-06-09T00:00:00Z';
    const ran = {
      queued_at,
      account_id: service.account_id,
      connection_id,
      run_type: 'plain',
      trigger_type: 'schedule',
    } as const;
    const error = { code: 'connection_refused', message: 'The source is down' } as never;
    await deps.db.insert(connectionRuns).values([
      { ...ran, number: 91, status: 'failed', error, finished_at: '2099-06-10T01:00:00Z' },
      { ...ran, number: 92, status: 'succeeded', finished_at: '2099-06-10T02:00:00Z' },
      { ...ran, number: 90, status: 'succeeded', finished_at: '2099-06-09T05:59:59Z' },
    ]);
    expect(await sendDailyDigests(deps)).toBe(0);
    deps.now = () => new Date('2099-06-10T06:00:30Z');
    expect((await Promise.all([sendDailyDigests(deps), sendDailyDigests(deps)])).toSorted()).toEqual([0, 1]);
    await evaluate();
    const digests = () => mail.mails.filter(({ raw }) => raw.includes('Subject: Daily digest: 2 runs, 1 failed'));
    await until(() => digests().length === 1);
    expect(digests()[0]?.raw).toContain('Failed: Late night');
    expect((await call('GET', '/automation/notification_settings')).body.next_digest_at).toBe(
      '2099-06-11T06:00:00.000Z',
    );
  });
});
