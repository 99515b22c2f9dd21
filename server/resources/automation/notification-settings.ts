import { eq } from 'drizzle-orm';
import { z } from 'zod';
import { accounts, notificationSettings, type NotificationSettingsRow } from '../../../db/schema/index.ts';
import { releaseHeld } from '../../automation/delivery/quiet-hours.ts';
import type { Ctx } from '../../api/procedure.ts';
import { requireQuietHours } from '../../api/quiet-hours.ts';
import { instant, timeOfDay, timeZone } from '../../api/wire-types.ts';
import { nextDaily } from '../../pipeline/daily-times.ts';
import { NO_QUIET_HOURS, quietUntil } from '../../pipeline/quiet-hours.ts';
import { Severity } from './events-schema.ts';

export const NotificationSettings = z
  .object({
    timezone: z.string().nullable().meta({ description: 'Zone of the times of day. Null: that of the account.' }),
    quiet_from: z.string().nullable().meta({ description: 'When quiet hours begin, HH:MM. Null: there are none.' }),
    quiet_until: z.string().nullable(),
    urgent_severity: Severity.nullable().meta({
      description: 'Sent during quiet hours too, from this severity up. Null: nothing is.',
    }),
    digest_at: z.string().nullable().meta({ description: 'When the daily digest is sent, HH:MM. Null: never.' }),
    next_digest_at: instant().nullable(),
    quiet_now_until: instant().nullable().meta({ description: 'The end of the quiet hours under way.' }),
  })
  .meta({ id: 'NotificationSettings' });
type NotificationSettings = z.infer<typeof NotificationSettings>;

export const UpdateNotificationSettings = z
  .strictObject({
    timezone: timeZone().nullable(),
    quiet_from: timeOfDay().nullable(),
    quiet_until: timeOfDay().nullable(),
    urgent_severity: Severity.nullable(),
    digest_at: timeOfDay().nullable(),
  })
  .partial()
  .refine((body) => Object.values(body).some((value) => value !== undefined), 'At least one field is required')
  .meta({
    id: 'UpdateNotificationSettings',
    description: 'Omitted keys stay unchanged.',
    examples: [{ quiet_from: '22:00', quiet_until: '07:00', timezone: 'Europe/Berlin' }, { digest_at: '08:00' }],
  });
type UpdateNotificationSettings = z.infer<typeof UpdateNotificationSettings>;

const DEFAULTS = { ...NO_QUIET_HOURS, timezone: null, digest_at: null, next_digest_at: null };

export async function getNotificationSettings(ctx: Ctx): Promise<NotificationSettings> {
  const { settings, zone } = await read(ctx);
  const { timezone, quiet_from, quiet_until, urgent_severity, digest_at, next_digest_at } = settings;
  const now = ctx.deps.now();
  const end = quiet_from && quiet_until ? quietUntil({ timezone: zone, quiet_from, quiet_until }, now) : null;
  const quiet_now_until = end?.toISOString() ?? null;
  return { timezone, quiet_from, quiet_until, urgent_severity, digest_at, next_digest_at, quiet_now_until };
}

type Stored = Omit<NotificationSettingsRow, 'account_id' | 'updated_at'>;

async function read(ctx: Ctx): Promise<{ settings: Stored; zone: string }> {
  const [row] = await ctx.db
    .select({ settings: notificationSettings, account: accounts.timezone })
    .from(accounts)
    .leftJoin(notificationSettings, eq(notificationSettings.account_id, accounts.id))
    .where(eq(accounts.id, ctx.principal.account_id));
  const settings = row?.settings ?? DEFAULTS;
  return { settings, zone: settings.timezone ?? row?.account ?? 'UTC' };
}

/** @throws ApiError 400 `invalid_quiet_hours` */
export async function updateNotificationSettings(
  ctx: Ctx,
  input: UpdateNotificationSettings,
): Promise<NotificationSettings> {
  const { account_id } = ctx.principal;
  // Created first, so that two updates at once find a row to lock.
  await ctx.db.insert(notificationSettings).values({ account_id }).onConflictDoNothing();
  const own = eq(notificationSettings.account_id, account_id);
  await ctx.db.select().from(notificationSettings).where(own).for('no key update');
  const before = await read(ctx);
  const { timezone, quiet_from, quiet_until, urgent_severity, digest_at } = { ...before.settings, ...input };
  requireQuietHours({ quiet_from, quiet_until }, '');
  await ctx.db.update(notificationSettings).set({ timezone, quiet_from, quiet_until, urgent_severity }).where(own);
  const { zone } = await read(ctx);
  if (digest_at !== before.settings.digest_at || zone !== before.zone) {
    await ctx.db
      .update(notificationSettings)
      .set({ digest_at, next_digest_at: digest_at && nextDigest(ctx, digest_at, zone) })
      .where(own);
  }
  await releaseHeld(ctx.db, ctx.deps.queue, { account_id, now: ctx.deps.now().toISOString() });
  return getNotificationSettings(ctx);
}

const nextDigest = (ctx: Ctx, digest_at: string, timezone: string) =>
  nextDaily(digest_at, { timezone, after: ctx.deps.now() }).toISOString();

/** Sets the time of the digest unless there is one. */
export async function ensureDigest(ctx: Ctx): Promise<void> {
  if ((await read(ctx)).settings.digest_at === null) await updateNotificationSettings(ctx, { digest_at: '08:00' });
}
