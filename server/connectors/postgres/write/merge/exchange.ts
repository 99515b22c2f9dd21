import { DataError } from '../../../contract/errors.ts';
import type { Merged } from '../../../kits/sql/merge/merge.ts';
import { type Stage, stagedMerge } from '../../../kits/sql/stage.ts';
import type { PgSession } from '../../connection/session.ts';
import { identifier, literal } from '../../connection/sql.ts';
import { postgres } from '../dialect.ts';
import { exchangeStatement, mergedOf } from './merge.ts';
import type { PgTarget } from '../target.ts';
import { exchangePlan } from '../../../kits/sql/merge/exchange-plan.ts';
import { OVERRIDING } from './overriding.ts';

/**
 * Merges the stage of an open transaction by an exchange: one statement, after which rows of other tables refer to the
 * same keys as before it.
 * @returns null: nothing was changed, since rows of other tables would follow the removal, or a rule is broken either way
 */
export async function exchangeRows({
  session,
  target,
  stage,
}: {
  session: PgSession;
  target: PgTarget;
  stage: Stage;
}): Promise<Merged | null> {
  const table = `${literal(target.relation)}::regclass`;
  const { rows } = await session.query(
    `select a.attname from pg_attribute a
      where a.attrelid = ${table} and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
        and not exists (select 1 from pg_constraint k where k.contype = 'f' and k.confrelid = a.attrelid and k.confdeltype <> 'a')`,
  );
  if (rows.length === 0) return null;
  const old = identifier(`${stage.prefix}old`);
  const plan = exchangePlan(postgres, target, stagedMerge(postgres, target, stage), {
    names: rows.map(([name]) => name!),
    old,
    overriding: OVERRIDING,
  });
  await session.query('savepoint before_exchange');
  try {
    return mergedOf((await session.query(exchangeStatement(plan, { name: stage.latest, old }), { slow: true })).rows);
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    await session.query('rollback to savepoint before_exchange');
    return null;
  }
}
