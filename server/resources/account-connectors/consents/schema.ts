import { z } from 'zod';
import { ConnectorType, idInBody, instant, text } from '../../../api/wire-types.ts';

export const BeginConsentRequest = z
  .strictObject({
    account_connector_id: idInBody().nullish().meta({
      description: 'A stored source or destination, whose settings `parameters` overrides.',
    }),
    connector_type: ConnectorType.default('source'),
    connector_name: text(1, 100).default('http_api'),
    parameters: z.record(z.string(), z.unknown()).default({}),
  })
  .meta({
    id: 'BeginConsentRequest',
    examples: [
      { connector_name: 'http_api', parameters: { definition: 'base_url: …', secrets: { client_secret: '…' } } },
    ],
  });
export type BeginConsentRequest = z.output<typeof BeginConsentRequest>;

export const BegunConsent = z
  .object({
    id: z.string(),
    url: z.string().meta({ description: "The provider's page, to open in a browser. It can be used once." }),
    needs_code: z.boolean().meta({ description: 'Whether the last page shows a code that the consent is used with.' }),
    expires_at: instant(),
  })
  .meta({ id: 'BegunConsent' });
export type BegunConsent = z.infer<typeof BegunConsent>;

export const OAuthConsent = z
  .object({
    id: z.string(),
    status: z.enum(['pending', 'exchanging', 'completed', 'failed', 'used', 'expired']),
    error: z.object({ code: z.string(), message: z.string() }).nullable(),
    expires_at: instant(),
  })
  .meta({ id: 'OAuthConsent' });
export type OAuthConsent = z.infer<typeof OAuthConsent>;

/** In the request that creates or updates a source or destination. */
export const GivenConsent = z
  .strictObject({
    id: idInBody(),
    code: text(1, 20).optional().meta({ description: 'Shown by the last page, if the consent needs a code.' }),
  })
  .meta({ id: 'GivenConsent', description: 'A completed consent, whose tokens become part of the parameters.' });
export type GivenConsent = z.infer<typeof GivenConsent>;
