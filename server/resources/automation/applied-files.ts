import { and, asc, eq, sql } from 'drizzle-orm';
import { z } from 'zod';
import { type AppliedFileRow, appliedFiles, APPLIED_KINDS } from '../../../db/schema/index.ts';
import { digestsOf, readItems } from '../../automation/drift/applied-settings.ts';
import { compareFile, report } from '../../automation/drift/compare-applied.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { idInBody, instant, isId, name, owner, text, whole } from '../../api/wire-types.ts';
import { notFound } from '../../platform/errors.ts';

const MAX_ITEMS = 10_000;

export const RecordAppliedFile = z
  .strictObject({
    file: text(1, 500).meta({ description: 'The file or folder that was applied.' }),
    owner: owner().default(null),
    prune: z
      .boolean()
      .default(false)
      .meta({ description: 'Items of the owner that the file does not name are differences, too.' }),
    items: z
      .array(
        z.strictObject({
          kind: z.enum(APPLIED_KINDS),
          id: idInBody(),
          name: name(),
          settings: z.record(text(1, 500), z.unknown()).meta({
            description: 'The settings that the file names, with null for each value; streams by `namespace.name`.',
          }),
        }),
      )
      .min(1)
      .max(MAX_ITEMS),
  })
  .meta({
    id: 'RecordAppliedFile',
    examples: [
      {
        file: 'pipelines.yaml',
        items: [
          {
            kind: 'connection',
            id: '0198c5f2-7a1b-7c3d-8e4f-5a6b7c8d9e0f',
            name: 'Shop',
            settings: { schedule: null, streams: { 'public.orders': { sync_mode: null } } },
          },
        ],
      },
    ],
  });
type RecordAppliedFile = z.output<typeof RecordAppliedFile>;

export const AppliedFile = z
  .object({
    id: z.string(),
    file: z.string(),
    owner: z.string().nullable(),
    prune: z.boolean(),
    items: whole().meta({ description: 'How many items the file names.' }),
    differences: z
      .array(z.string())
      .meta({ description: 'What `apply` would do, such as `update connection "Shop": schedule`. Empty: none.' }),
    applied_at: instant(),
    checked_at: instant().meta({ description: 'The last comparison.' }),
  })
  .meta({ id: 'AppliedFile' });
type AppliedFile = z.infer<typeof AppliedFile>;

const present = ({ id, file, owner: named, prune, items, differences, applied_at, checked_at }: AppliedFileRow) => ({
  id,
  file,
  owner: named,
  prune,
  items: items.length,
  differences,
  applied_at,
  checked_at,
});

const ofAccount = ({ principal }: Ctx) => eq(appliedFiles.account_id, principal.account_id);

export async function listAppliedFiles(ctx: Ctx): Promise<AppliedFile[]> {
  const rows = await ctx.db
    .select()
    .from(appliedFiles)
    .where(ofAccount(ctx))
    .orderBy(asc(sql`coalesce(${appliedFiles.owner}, '')`), asc(appliedFiles.file));
  return rows.map(present);
}

/** Keeps what the settings of a file are now, for the worker to compare them. @throws ApiError 404 for an item. */
export async function recordAppliedFile(ctx: Ctx, input: RecordAppliedFile): Promise<AppliedFile> {
  const { account_id, user_id } = ctx.principal;
  const current = await readItems(ctx.db, { account_id, items: input.items });
  const items = input.items.map((item) => {
    const found = current.get(item.id);
    if (!found) throw notFound(`The ${item.kind} "${item.name}"`);
    return { ...item, digests: digestsOf(found, item.settings) };
  });
  const now = ctx.deps.now().toISOString();
  const recorded = {
    prune: input.prune,
    items,
    differences: [],
    applied_by: user_id,
    applied_at: now,
    checked_at: now,
  };
  const known = await lockFile(ctx, input);
  if (!known) {
    const [created] = await ctx.db
      .insert(appliedFiles)
      .values({ account_id, file: input.file, owner: input.owner, ...recorded })
      .returning();
    return present(created!);
  }
  const [updated] = await ctx.db.update(appliedFiles).set(recorded).where(eq(appliedFiles.id, known.id)).returning();
  // What differed has been applied.
  if (known.differences.length > 0) await report(ctx.db, updated!, actorOf(ctx.principal));
  return present(updated!);
}

async function lockFile(ctx: Ctx, { file, owner: named }: Pick<RecordAppliedFile, 'file' | 'owner'>) {
  const [known] = await ctx.db
    .select()
    .from(appliedFiles)
    .where(and(ofAccount(ctx), eq(appliedFiles.file, file), sql`${appliedFiles.owner} is not distinct from ${named}`))
    .for('no key update');
  return known;
}

/** Compares now instead of at the next quarter of an hour. @throws ApiError 404 */
export async function compareAppliedFile(
  ctx: Ctx,
  { applied_file_id }: { applied_file_id: string },
): Promise<AppliedFile> {
  const [file] = isId(applied_file_id)
    ? await ctx.db
        .select()
        .from(appliedFiles)
        .where(and(ofAccount(ctx), eq(appliedFiles.id, applied_file_id)))
        .for('no key update')
    : [];
  if (!file) throw notFound('Applied file');
  return present(await compareFile(ctx.db, file, { now: ctx.deps.now(), actor: actorOf(ctx.principal) }));
}

/** The file is not compared any more. A difference that was reported is reported to be over. @throws ApiError 404 */
export async function forgetAppliedFile(ctx: Ctx, { applied_file_id }: { applied_file_id: string }): Promise<void> {
  const [gone] = isId(applied_file_id)
    ? await ctx.db
        .delete(appliedFiles)
        .where(and(ofAccount(ctx), eq(appliedFiles.id, applied_file_id)))
        .returning()
    : [];
  if (!gone) throw notFound('Applied file');
  if (gone.differences.length > 0) await report(ctx.db, { ...gone, differences: [] }, actorOf(ctx.principal));
}
