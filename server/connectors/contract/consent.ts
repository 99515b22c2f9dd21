import type { ConnectorContext } from './context.ts';

/** A request for consent at a provider of OAuth 2 (RFC 6749, PKCE by RFC 7636). */
export interface ConsentRequest {
  /** Where the provider sends the browser back. */
  redirect_url: string;
  state: string;
  /** Sent with the code alone. The page gets its hash. */
  code_verifier: string;
}

/** What the provider's answer contains. */
export interface ConsentAnswer extends ConsentRequest {
  code: string;
}

/**
 * Obtains tokens by a user's consent at the provider instead of copying them. The parameters are not validated: what the
 * consent provides is still missing.
 */
export interface Consent {
  /** Address of the provider's page. @throws ConfigurationError, such as `consent_unsupported` for these parameters */
  page(parameters: Record<string, unknown>, request: ConsentRequest): string;
  /** Exchanges the code for tokens. @returns the parameters that change, whole */
  complete(
    ctx: Pick<ConnectorContext<unknown>, 'fetch' | 'signal'>,
    parameters: Record<string, unknown>,
    answer: ConsentAnswer,
  ): Promise<Record<string, unknown>>;
}
