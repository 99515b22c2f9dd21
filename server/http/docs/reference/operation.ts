import type { oas31 } from 'zod-openapi';
import { escaped } from '../render.ts';
import { exampleOf, exampleRequest } from './example.ts';
import { type ShownField, fieldList, fieldsOf, prose, typeOf } from './fields.ts';
import type { ApiDocument, ReferenceOperation } from './groups.ts';
import { codeSamples, SAMPLE_LANGUAGES, sentBy } from './samples.ts';

/** An operation: what it does on the left, how to call it on the right. */
export function operationHtml(operation: ReferenceOperation, document: ApiDocument): string {
  const { id, told } = operation;
  const { summary = id, description } = told;
  return `<section class="operation" id="${escaped(id)}">
<div class="about">
<h2><a href="#${escaped(id)}">${escaped(summary)}</a></h2>
${requestLine(operation)}
${prose(description)}
${accessHtml(operation)}
${parametersHtml(told)}
${bodyHtml(told, document)}
${responseHtml(told)}
${errorsHtml(told)}
</div>
<div class="code">${codeHtml(operation, document)}</div>
</section>`;
}

const requestLine = ({ endpoint, procedure, type }: ReferenceOperation): string =>
  endpoint
    ? `<p class="request"><b class="method ${endpoint.method.toLowerCase()}">${endpoint.method}</b> <code>${escaped(endpoint.path)}</code></p>`
    : `<p class="request"><b class="method">tRPC</b> <code>${escaped(procedure!)}</code> ${type}</p>`;

function accessHtml({ endpoint, procedure, type, told }: ReferenceOperation): string {
  const needed = (told as { 'x-required-permission'?: string | string[] })['x-required-permission'];
  const call = type === 'mutation' ? 'mutate' : type === 'query' ? 'query' : 'subscribe';
  const rows = [
    endpoint?.public && 'Needs no API key.',
    needed && `Needs the permission ${[needed].flat().map(code).join(' or ')}.`,
    procedure ? `Typed client: ${code(`api.${procedure}.${call}`)}.` : 'REST only.',
  ].filter((row) => typeof row === 'string');
  return `<p class="access">${rows.join(' ')}</p>`;
}

const code = (text: string) => `<code>${escaped(text)}</code>`;

const PLACES: [place: string, title: string][] = [
  ['path', 'Path'],
  ['query', 'Query'],
];

function parametersHtml({ parameters = [] }: oas31.OperationObject): string {
  const all = parameters as oas31.ParameterObject[];
  const lists = PLACES.map(([place, title]) => {
    const fields = all
      .filter((one) => one.in === place)
      .map(({ name, schema, required, description }): ShownField => {
        return { name, schema: schema!, required: required === true, description };
      });
    return fields.length === 0 ? '' : `<h3>${title}</h3>${fieldList(fields)}`;
  });
  const headers = all.filter((one) => one.in === 'header').map(({ name }) => name);
  // The same everywhere, so their text stands once, in the overview.
  const links = headers.map((name) => `<a href="/docs/api#${name.toLowerCase()}"><code>${escaped(name)}</code></a>`);
  return lists.join('') + (links.length === 0 ? '' : `<h3>Headers</h3><p>${links.join(', ')}</p>`);
}

function bodyHtml({ requestBody }: oas31.OperationObject, document: ApiDocument): string {
  const body = requestBody as oas31.RequestBodyObject | undefined;
  const [entry] = Object.entries(body?.content ?? {});
  if (!body || !entry) return '';
  const [contentType, { schema }] = entry;
  const named = contentType === 'application/json' ? '' : ` as <code>${escaped(contentType)}</code>`;
  const title = `<h3>Body</h3><p>${typeOf(schema!)}${named}${body.required ? '' : ', optional'}</p>`;
  return title + innerFields(resolved(schema as oas31.SchemaObject, document));
}

/** The schema that a reference, or its union with null, names. */
function resolved(schema: oas31.SchemaObject, document: ApiDocument): oas31.SchemaObject {
  const named = [schema, ...((schema.anyOf ?? []) as oas31.SchemaObject[])].find((one) => one.$ref);
  const name = named?.$ref?.split('/').at(-1);
  return (name && (document.components?.schemas?.[name] as oas31.SchemaObject | undefined)) || schema;
}

const innerFields = (schema: oas31.SchemaObject): string => {
  const fields = fieldsOf(schema);
  return fields.length === 0 ? '' : fieldList(fields);
};

const isSuccess = ([status]: [string, unknown]) => status.startsWith('2');

function responseHtml({ responses = {} }: oas31.OperationObject): string {
  const entry = Object.entries(responses).find(isSuccess);
  if (!entry) return '';
  const [status, response] = entry as [string, oas31.ResponseObject];
  const [content] = Object.entries(response.content ?? {});
  const headers = Object.entries((response.headers ?? {}) as Record<string, oas31.HeaderObject>)
    .filter(([name]) => name !== 'X-Request-Id')
    .map(([name]) => code(name));
  const body = content ? typeOf(content[1].schema!) : 'no body';
  const kind = content && content[0] !== 'application/json' ? ` as ${code(content[0])}` : '';
  const more = headers.length > 0 ? `, with the headers ${headers.join(', ')}` : '';
  const fields = content ? innerFields(content[1].schema as oas31.SchemaObject) : '';
  const list = fields && `<details><summary>Fields</summary>${fields}</details>`;
  return `<h3>Response</h3><p><b>${status}</b> ${body}${kind}${more}</p>${list}`;
}

function errorsHtml({ responses = {} }: oas31.OperationObject): string {
  const errors = Object.entries(responses).filter((entry) => !isSuccess(entry)) as [string, oas31.ResponseObject][];
  if (errors.length === 0) return '';
  const rows = errors.map(([status, { description }]) => `<div><dt>${status}</dt><dd>${prose(description)}</dd></div>`);
  return `<h3><a href="/docs/api#errors">Errors</a></h3><dl class="errors">${rows.join('')}</dl>`;
}

function codeHtml(operation: ReferenceOperation, document: ApiDocument): string {
  const request = exampleRequest(operation, document);
  const samples = codeSamples(operation, request);
  const tabs = SAMPLE_LANGUAGES.map(
    ([language, title]) => `<button type="button" data-choose="${language}">${title}</button>`,
  );
  const blocks = SAMPLE_LANGUAGES.map(
    ([language, title]) =>
      `<pre data-language="${language}" tabindex="0" aria-label="${title}"><code>${escaped(samples[language])}</code></pre>`,
  );
  return `<div class="tabs" role="group" aria-label="Language">${tabs.join('')}${tryButton(operation, request)}</div>${blocks.join('')}${exampleHtml(operation, document)}`;
}

/** The form is added by the page's script. */
function tryButton(operation: ReferenceOperation, request: ReturnType<typeof exampleRequest>): string {
  const { method, path, body, isForm, result } = sentBy(operation, request);
  if (isForm || result === 'events') return '';
  const text = body === undefined ? '' : ` data-body="${escaped(JSON.stringify(body, null, 2))}"`;
  return `<button type="button" class="try" data-method="${method}" data-path="${escaped(path)}"${text}>Try it</button>`;
}

function exampleHtml({ told }: ReferenceOperation, document: ApiDocument): string {
  const [status, response] = Object.entries(told.responses ?? {}).find(isSuccess) ?? [];
  const schema = (response as oas31.ResponseObject | undefined)?.content?.['application/json']?.schema;
  if (!schema) return '';
  const example = JSON.stringify(exampleOf(schema, document), null, 2);
  return `<p class="caption">Response ${status}</p><pre class="response" tabindex="0" aria-label="Example response"><code>${escaped(example)}</code></pre>`;
}
