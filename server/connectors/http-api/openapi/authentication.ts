import { type Json, listOf, objectOf, type OpenApiDocument, textOf } from './document.ts';

const SECRET = (name: string) => `{{ secrets.${name} }}`;

/** The first security scheme that the document requires and that a definition can express. */
export function draftAuthentication(document: OpenApiDocument): Json | null {
  const { root } = document;
  // `securityDefinitions` is Swagger 2.
  const schemes = objectOf(objectOf(root.components).securitySchemes ?? root.securityDefinitions);
  const required = listOf(root.security).flatMap((one) => Object.keys(objectOf(one)));
  for (const name of [...required, ...Object.keys(schemes)]) {
    const found = Object.hasOwn(schemes, name) ? ofScheme(document.resolve(schemes[name])) : null;
    if (found) return found;
  }
  return null;
}

function ofScheme(scheme: Json): Json | null {
  const type = textOf(scheme.type);
  const kind = type === 'http' ? textOf(scheme.scheme).toLowerCase() : type;
  if (kind === 'bearer') return { type: 'bearer', token: SECRET('token') };
  if (kind === 'basic') return { type: 'basic', username: '{{ config.username }}', password: SECRET('password') };
  if (kind === 'oauth2') return ofFlows(scheme);
  if (kind !== 'apiKey' || (scheme.in !== 'header' && scheme.in !== 'query')) return null;
  return { type: 'api_key', in: scheme.in, name: textOf(scheme.name), value: SECRET('api_key') };
}

function ofFlows(scheme: Json): Json | null {
  const flows = scheme.flows === undefined ? { [textOf(scheme.flow)]: scheme } : objectOf(scheme.flows);
  const machine = objectOf(flows.clientCredentials ?? flows.application);
  const consent = objectOf(flows.authorizationCode ?? flows.accessCode);
  const client = { client_id: '{{ config.client_id }}', client_secret: SECRET('client_secret') };
  const scopeOf = (flow: Json) => {
    const scope = Object.keys(objectOf(flow.scopes)).join(' ');
    return scope === '' ? {} : { scope };
  };
  if (typeof machine.tokenUrl === 'string') {
    return { type: 'oauth2_client_credentials', token_url: machine.tokenUrl, ...client, ...scopeOf(machine) };
  }
  if (typeof consent.tokenUrl !== 'string') return { type: 'bearer', token: SECRET('token') };
  const { tokenUrl: token_url, authorizationUrl } = consent;
  return {
    type: 'oauth2_refresh_token',
    token_url,
    ...(typeof authorizationUrl === 'string' && { authorization_url: authorizationUrl }),
    ...client,
    refresh_token: SECRET('refresh_token'),
    ...scopeOf(consent),
  };
}
