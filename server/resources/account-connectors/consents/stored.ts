import { randomInt } from 'node:crypto';
import { and, eq } from 'drizzle-orm';
import { type OAuthConsentRow, oauthConsents } from '../../../../db/schema/index.ts';
import type { Ctx } from '../../../api/procedure.ts';
import type { Deps } from '../../../deps.ts';

/** How long a person may take at the provider. */
export const PENDING_MS = 10 * 60_000;
/** How long the tokens are kept for the source or destination. */
export const COMPLETED_MS = 30 * 60_000;

/** What a consent keeps encrypted. */
export interface SealedConsent {
  /** With the secrets. */
  parameters: Record<string, unknown>;
  state: string;
  code_verifier: string;
  /** The parameters that the tokens changed, once it is completed. */
  changed?: Record<string, unknown>;
}

export const consentContext = ({ account_id, id }: Pick<OAuthConsentRow, 'account_id' | 'id'>) =>
  `oauth_consent:${account_id}:${id}`;

export const sealConsent = (deps: Deps, row: Pick<OAuthConsentRow, 'account_id' | 'id'>, content: SealedConsent) =>
  deps.secrets.seal(JSON.stringify(content), consentContext(row));

export const openConsent = (deps: Deps, row: OAuthConsentRow): SealedConsent =>
  JSON.parse(deps.secrets.open(row.sealed, consentContext(row))) as SealedConsent;

type Hashed = 'state' | 'browser' | 'code';

export const hashOf = ({ secrets }: Pick<Deps, 'secrets'>, kind: Hashed, value: string) =>
  secrets.hmac(`oauth_consent_${kind}`, value);

/** The hashes that a stored value may have. */
export const hashesOf = ({ secrets }: Pick<Deps, 'secrets'>, kind: Hashed, value: string) =>
  secrets.hmacs(`oauth_consent_${kind}`, value);

/** Without letters and digits that look alike. */
const ALPHABET = 'ABCDEFGHJKMNPQRSTVWXYZ23456789';
const CODE_LENGTH = 10;

/** A person copies it. Few tries and half an hour are too little to guess 49 bits. */
export const newCode = () => Array.from({ length: CODE_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');

export const redirectUrl = ({ config }: Pick<Deps, 'config'>) => `${config.PUBLIC_URL}/oauth/callback`;

/** The consent is one that the caller began. `id`: a UUID. */
export const isOfCaller = ({ principal }: Pick<Ctx, 'principal'>, id: string) =>
  and(
    eq(oauthConsents.id, id),
    eq(oauthConsents.user_id, principal.user_id),
    eq(oauthConsents.account_id, principal.account_id),
  );
