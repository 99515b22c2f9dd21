import type { oas31 } from 'zod-openapi';
import { escaped } from '../render.ts';
import { prose } from './fields.ts';
import type { ApiDocument, ReferenceGroup } from './groups.ts';

/** What holds for all operations, and where each is. */
export function overviewHtml(
  document: ApiDocument,
  groups: ReferenceGroup[],
  urlOf: (group: ReferenceGroup) => string,
) {
  const lists = groups.map((group) => {
    const items = group.operations.map(({ id, told }) => {
      return `<li><a href="${urlOf(group)}#${escaped(id)}">${escaped(told.summary ?? id)}</a></li>`;
    });
    return `<section><h3><a href="${urlOf(group)}">${escaped(group.title)}</a></h3><p>${escaped(group.summary)}</p><ul>${items.join('')}</ul></section>`;
  });
  return `<h1>API reference</h1>
${prose(INTRODUCTION)}
<h2 id="errors">Errors</h2>
${prose(ERRORS)}
<details><summary>All codes</summary><p class="codes">${errorCodes(document)}</p></details>
${headersHtml(groups)}
<h2 id="lists">Lists</h2>
${prose(LISTS)}
<h2 id="clients">Clients</h2>
${prose(CLIENTS)}
<h2 id="webhooks">Webhooks</h2>
${prose(WEBHOOKS)}
<h2 id="operations">Operations</h2>
<div class="groups">${lists.join('\n')}</div>`;
}

const INTRODUCTION = `Every request carries \`Authorization: Bearer <API key>\`; create a key in the console, under your
profile. Bodies are JSON, times are RFC 3339 in UTC, and ids are opaque strings. Requests are checked in this order:
key, permission, shape, object, state, plan. The [OpenAPI document](/openapi.json) describes the same operations.`;

const ERRORS = `Errors are \`{detail, code}\`, with status 422 \`{detail: [{loc, msg, type}]}\`. Programs decide by
\`code\`; people read \`detail\`. Every response has an \`X-Request-Id\`, which the log of the service names too. Retry
429, 502, 503 and 504 after the time in \`Retry-After\`, and POST requests with an \`Idempotency-Key\`.`;

const LISTS = `Lists take \`limit\` and \`offset\`, and return the newest first unless their text says otherwise.
\`X-Total-Count\` is the number of items that match, \`Link\` has the addresses of the next and previous pages.`;

const CLIENTS = `The samples read \`DATA_PIPELINES_URL\` and \`DATA_PIPELINES_KEY\` from the environment. Those in
TypeScript use the typed client (\`data-pipelines-client\`), which speaks tRPC below \`/trpc\`: a procedure takes path,
query and body as one object. A query is \`GET /trpc/{procedure}?input={JSON}\`, a mutation \`POST /trpc/{procedure}\` with
the input as its body, and the result is \`result.data\` of the response. Procedures that tRPC alone serves are marked
\`tRPC\`. Those in Python use \`requests\`.`;

const WEBHOOKS = `A trigger with the action \`call_webhook\` sends
[WebhookDelivery](/docs/api/schemas#WebhookDelivery), signed according to Standard Webhooks, until it receives a 2xx
response. See [Automation](/docs/guides/automation).`;

function errorCodes({ components }: ApiDocument): string {
  const { anyOf = [] } = (components?.schemas?.ErrorCode ?? {}) as oas31.SchemaObject;
  const codes = (anyOf as oas31.SchemaObject[]).flatMap((one) => one.enum ?? []) as string[];
  return codes.map((code) => `<code>${escaped(code)}</code>`).join(' ');
}

/** Each header of requests once, with the text that it has in the document. */
function headersHtml(groups: ReferenceGroup[]): string {
  const all = groups
    .flatMap(({ operations }) => operations)
    .flatMap(({ told }) => (told.parameters ?? []) as oas31.ParameterObject[])
    .filter((one) => one.in === 'header');
  const texts = new Map(all.map(({ name, description }) => [name, description]));
  return [...texts]
    .map(([name, text]) => `<h2 id="${name.toLowerCase()}">${escaped(name)}</h2>\n${prose(text)}`)
    .join('\n');
}
