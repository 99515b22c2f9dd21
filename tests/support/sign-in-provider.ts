import { generateKeyPairSync, sign } from 'node:crypto';
import { createServer } from 'node:http';
import { type Configuration, Provider } from 'oidc-provider';

/** A person at the provider: the subject and what its claims say. */
export interface ProviderPerson {
  sub: string;
  [claim: string]: unknown;
}

export interface SignInProvider {
  issuer: string;
  /** Whom the provider signs in next. Null: the person declines. */
  person: ProviderPerson | null;
  /** Claims of ID tokens that differ from what the provider would write. They are signed again. */
  forged: Record<string, unknown>;
  close(): Promise<void>;
}

export const CLIENT = { id: 'pipelines', secret: 'a-secret-of-the-client-0123456789' };

/**
 * A real OpenID provider on a free port. Its pages for login and consent are replaced: it signs in `person` at once, so
 * that a test follows redirects only.
 */
export async function startSignInProvider(redirect_uris: string[], host = '127.0.0.1'): Promise<SignInProvider> {
  const server = createServer();
  await new Promise<void>((done) => {
    server.listen(0, '127.0.0.1', done);
  });
  const issuer = `http://${host}:${(server.address() as { port: number }).port}`;
  const self: SignInProvider = {
    issuer,
    person: null,
    forged: {},
    close: async () => {
      const closed = new Promise((done) => void server.close(done));
      server.closeAllConnections();
      await closed;
    },
  };
  const provider = new Provider(issuer, configuration(self, redirect_uris));
  provider.use(async (context, next) => {
    await next();
    const body = context.body as { id_token?: string } | undefined;
    if (body?.id_token && Object.keys(self.forged).length > 0) body.id_token = signedAgain(body.id_token, self.forged);
  });
  const handler = provider.callback();
  server.on('request', (request, response) => {
    const isInteraction = request.url?.startsWith('/interaction/');
    const answering = isInteraction ? finish(provider, self, { request, response }) : handler(request, response);
    answering.catch((error: unknown) => {
      response.statusCode = 500;
      response.end(String(error));
    });
  });
  return self;
}

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

function signedAgain(token: string, forged: Record<string, unknown>): string {
  const [header, payload] = token.split('.') as [string, string];
  const claims = { ...(JSON.parse(Buffer.from(payload, 'base64url').toString()) as object), ...forged };
  const content = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
  return `${content}.${sign('sha256', Buffer.from(content), privateKey).toString('base64url')}`;
}

function configuration(self: SignInProvider, redirect_uris: string[]): Configuration {
  return {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        token_endpoint_auth_method: 'client_secret_post',
        grant_types: ['authorization_code', 'refresh_token'],
        redirect_uris,
        post_logout_redirect_uris: [...new Set(redirect_uris.map((uri) => uri.replace(/\/console\/.*/, '/console')))],
        require_auth_time: true,
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups', 'tenant'] },
    conformIdTokenClaims: false,
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: true } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), alg: 'RS256', use: 'sig', kid: 'test' }] },
    cookies: { keys: ['only for tests'] },
    ttl: { Session: 600, Interaction: 600, Grant: 600, AccessToken: 600, IdToken: 600 },
    findAccount: (_, sub) => ({
      accountId: sub,
      claims: () => ({ ...self.person, sub }),
    }),
  };
}

async function finish(
  provider: Provider,
  self: SignInProvider,
  call: {
    request: Parameters<Provider['interactionDetails']>[0];
    response: Parameters<Provider['interactionDetails']>[1];
  },
): Promise<void> {
  const { request, response } = call;
  const details = await provider.interactionDetails(request, response);
  if (self.person === null) {
    await provider.interactionFinished(request, response, { error: 'access_denied' });
    return;
  }
  const accountId = self.person.sub;
  const grant = new provider.Grant({ accountId, clientId: String(details.params.client_id) });
  grant.addOIDCScope(String(details.params.scope));
  const consent = { grantId: await grant.save() };
  await provider.interactionFinished(request, response, {
    login: { accountId, ts: Math.floor(Date.now() / 1000) },
    consent,
  });
}
