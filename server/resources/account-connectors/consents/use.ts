import { and, eq, gt, sql } from 'drizzle-orm';
import { type OAuthConsentRow, oauthConsents } from '../../../../db/schema/index.ts';
import type { Db } from '../../../../db/types.ts';
import type { Ctx } from '../../../api/procedure.ts';
import type { AnyConnector } from '../../../connectors/contract/connector.ts';
import { describeParameters, receivedValue } from '../../../connectors/contract/parameters.ts';
import { badRequest } from '../../../platform/errors.ts';
import { overlayParameters } from '../parameters.ts';
import type { GivenConsent } from './schema.ts';
import { hashesOf, isOfCaller, openConsent } from './stored.ts';

type Values = Record<string, unknown>;

/** A person mistypes less often. */
const MAX_WRONG_CODES = 5;

interface Use {
  connector: AnyConnector;
  consent: GivenConsent;
  /** Null: it is created. */
  account_connector_id: string | null;
  /** The parameters of the request, and the stored ones. */
  given: Values;
  stored: Values;
}

/**
 * The parameters of a request with the tokens of a consent of the caller.
 * @throws ApiError 400 `consent_not_usable`, `consent_code_wrong`, `consent_outdated`
 */
export async function withConsent(ctx: Ctx, use: Use): Promise<Values> {
  const row = await usable(ctx, use);
  await checkCode(ctx, row, use.consent.code);
  const { parameters, changed = {} } = openConsent(ctx.deps, row);
  const given = { ...use.given, ...changed };
  refuseOtherPlace(use.connector, { ...parameters, ...changed }, overlayParameters(use.connector, given, use.stored));
  return given;
}

/** In the transaction that stores the tokens. @throws ApiError 400 `consent_not_usable` */
export async function spendConsent(db: Db, { id }: GivenConsent): Promise<void> {
  const [spent] = await db
    .update(oauthConsents)
    .set({ status: 'used', sealed: '' })
    .where(and(eq(oauthConsents.id, id), eq(oauthConsents.status, 'completed')))
    .returning({ id: oauthConsents.id });
  if (!spent) throw notUsable();
}

async function usable(ctx: Ctx, { consent, connector, account_connector_id }: Use): Promise<OAuthConsentRow> {
  const [row] = await ctx.db
    .select()
    .from(oauthConsents)
    .where(
      and(
        isOfCaller(ctx, consent.id),
        eq(oauthConsents.status, 'completed'),
        gt(oauthConsents.expires_at, ctx.deps.now().toISOString()),
      ),
    );
  const isSame =
    row?.account_connector_id === account_connector_id &&
    row.connector_type === connector.type &&
    row.connector_name === connector.name;
  if (!isSame) throw notUsable();
  return row;
}

/** Without the code, a link could lead another person to consent for this caller. */
async function checkCode(ctx: Ctx, row: OAuthConsentRow, code: string | undefined): Promise<void> {
  if (row.code_hash === null) return;
  // Counted before the comparison, so that parallel requests are no further tries.
  const [counted] = await ctx.deps.db
    .update(oauthConsents)
    .set({ wrong_codes: sql`${oauthConsents.wrong_codes} + 1` })
    .where(eq(oauthConsents.id, row.id))
    .returning({ tries: oauthConsents.wrong_codes });
  if ((counted?.tries ?? Infinity) > MAX_WRONG_CODES) throw notUsable();
  const typed = (code ?? '').replaceAll(/[\s-]/g, '').toUpperCase();
  if (row.code_hash !== null && hashesOf(ctx.deps, 'code', typed).includes(row.code_hash)) return;
  throw badRequest('consent_code_wrong', 'Enter the code that the last page of the consent shows', {
    field: 'oauth_consent',
  });
}

/** Tokens go to no other place than the one that the consent was for. */
function refuseOtherPlace(connector: AnyConnector, before: Values, after: Values): void {
  const moved = describeParameters(connector).find(
    ({ name, directs_secrets }) =>
      directs_secrets && !Bun.deepEquals(receivedValue(connector, name, before), receivedValue(connector, name, after)),
  );
  if (!moved) return;
  throw badRequest('consent_outdated', `${moved.label} has changed since the consent. Connect again`, {
    field: `parameters.${moved.name}`,
  });
}

const notUsable = () =>
  badRequest(
    'consent_not_usable',
    'The consent is not completed, expired, used already, or for other settings. Connect again',
    {
      field: 'oauth_consent',
    },
  );
