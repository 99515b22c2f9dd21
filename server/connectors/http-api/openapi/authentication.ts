import { type Json, listOf, objectOf, type OpenApiDocument, textOf } from './document.ts';

const SECRET = (name: string) => `{{ secrets.${name} }}`;

interface DraftedAuthentication {
  authentication: Json | null;
  /** What was guessed, as a sentence. */
  assumption: string;
}

const MAX_LISTED = 10;

/** The first security scheme that the document requires and that a definition can express. */
export function draftAuthentication(document: OpenApiDocument): DraftedAuthentication {
  const { root } = document;
  // `securityDefinitions` is Swagger 2.
  const schemes = objectOf(objectOf(root.components).securitySchemes ?? root.securityDefinitions);
  const required = listOf(root.security).flatMap((one) => Object.keys(objectOf(one)));
  const names = [...new Set([...required, ...Object.keys(schemes)])].filter((name) => Object.hasOwn(schemes, name));
  for (const name of names) {
    const authentication = ofScheme(document.resolve(schemes[name]));
    if (!authentication) continue;
    const others = names.filter((one) => one !== name);
    const optional = required.includes(name) ? '' : ', which the document does not require in general';
    const rest = others.length === 0 ? '' : `. Others in the document: ${others.slice(0, MAX_LISTED).join(', ')}`;
    return { authentication, assumption: `Authentication by the security scheme ${name}${optional}${rest}` };
  }
  const reason =
    names.length === 0
      ? 'the document has no security scheme'
      : `${names.slice(0, MAX_LISTED).join(', ')} cannot be expressed`;
  return { authentication: null, assumption: `No authentication: ${reason}` };
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
