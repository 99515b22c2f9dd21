import { z } from 'zod';
import { emitDrift } from '../../events/digest-events.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { owner, text } from '../../api/wire-types.ts';

export const DriftReport = z
  .strictObject({
    file: text(1, 500).meta({ description: 'The file or folder that the account was compared with.' }),
    owner: owner().default(null),
    changes: z
      .array(text(1, 500))
      .max(1000)
      .meta({ description: 'What `apply` would do, such as `update connection "Shop"`. Empty: the account matches.' }),
  })
  .meta({
    id: 'DriftReport',
    examples: [{ file: 'pipelines.yaml', changes: ['update connection "Shop"'] }],
  });

/** Emits `configuration_drifted`, or `configuration_matched`, which ends its case. */
export const reportDrift = (ctx: Ctx, { file, owner: named, changes }: z.output<typeof DriftReport>): Promise<void> =>
  emitDrift(ctx.db, {
    account_id: ctx.principal.account_id,
    actor: actorOf(ctx.principal),
    file,
    owner: named,
    items: changes,
  });
