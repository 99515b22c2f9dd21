import type { ExampleRequest } from './example.ts';
import type { ReferenceOperation } from './groups.ts';
import { literal, PYTHON, TYPESCRIPT } from './literal.ts';

export type SampleLanguage = 'curl' | 'typescript' | 'python';
export const SAMPLE_LANGUAGES: [language: SampleLanguage, title: string][] = [
  ['curl', 'curl'],
  ['typescript', 'TypeScript'],
  ['python', 'Python'],
];

/** The request as code. Address and key are variables of the environment. */
export function codeSamples(operation: ReferenceOperation, request: ExampleRequest): Record<SampleLanguage, string> {
  return {
    curl: curl(operation, request),
    typescript: operation.procedure === null ? plainFetch(operation, request) : typedClient(operation, request),
    python: python(operation, request),
  };
}

/** What the REST request is; that of tRPC for what it alone serves. */
interface Sent {
  method: string;
  /** With its query. */
  path: string;
  body: unknown;
  isForm: boolean;
  isPublic: boolean;
  /** Whether the response is text or absent. */
  result: 'json' | 'text' | 'events' | 'none';
}

export function sentBy({ endpoint, procedure, type, told }: ReferenceOperation, request: ExampleRequest): Sent {
  if (endpoint) {
    const path = endpoint.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(String(request.path[name])),
    );
    const query = new URLSearchParams(request.query as Record<string, string>);
    return {
      method: endpoint.method,
      path: query.size > 0 ? `${path}?${query.toString()}` : path,
      body: request.body,
      isForm: endpoint.consumes !== 'application/json',
      isPublic: endpoint.public,
      result: endpoint.status === 204 ? 'none' : endpoint.produces ? 'text' : 'json',
    };
  }
  const [response] = Object.values(told.responses ?? {});
  const hasContent = response !== undefined && 'content' in response && response.content !== undefined;
  const input = encodeURIComponent(JSON.stringify(request.body));
  return {
    method: type === 'mutation' ? 'POST' : 'GET',
    path: type === 'mutation' ? `/trpc/${procedure}` : `/trpc/${procedure}?input=${input}`,
    body: type === 'mutation' ? request.body : undefined,
    isForm: false,
    isPublic: false,
    result: type === 'subscription' ? 'events' : hasContent ? 'json' : 'none',
  };
}

function curl(operation: ReferenceOperation, request: ExampleRequest): string {
  const { method, path, body, isForm, isPublic, result } = sentBy(operation, request);
  const lines = [
    `curl ${result === 'events' ? '-N ' : ''}${method === 'GET' ? '' : `-X ${method} `}"$DATA_PIPELINES_URL${path}"`,
  ];
  if (!isPublic) lines.push('-H "Authorization: Bearer $DATA_PIPELINES_KEY"');
  if (result === 'events') lines.push('-H "Accept: text/event-stream"');
  if (result === 'text') lines.push('--compressed');
  if (isForm) for (const [name, file] of Object.entries(body as object)) lines.push(`-F ${name}=@${file}`);
  else if (body !== undefined) {
    const json = JSON.stringify(body, null, 2).replaceAll("'", String.raw`'\''`);
    lines.push('-H "Content-Type: application/json"', `-d '${json}'`);
  }
  return lines.join(' \\\n  ');
}

function typedClient({ procedure, type, endpoint }: ReferenceOperation, { path, query, body }: ExampleRequest): string {
  const part = (key: string | null | undefined, value: object) =>
    key ? (Object.keys(value).length > 0 ? { [key]: value } : {}) : value;
  // A body under a key of its own may be left out, or null.
  const own = body === undefined ? {} : endpoint?.body_key ? { [endpoint.body_key]: body } : (body as object);
  const input = { ...path, ...part(endpoint?.query_key, query), ...own };
  const argument =
    Object.keys(input).length === 0 && (endpoint?.body ?? null) === null ? '' : literal(input, TYPESCRIPT);
  const call = `api.${procedure}`;
  const head = `import { createApiClient } from 'data-pipelines-client';

const api = createApiClient(process.env.DATA_PIPELINES_URL!, process.env.DATA_PIPELINES_KEY);
`;
  if (type === 'subscription') {
    return `${head}${call}.subscribe(${argument}, {\n  onData: (data) => console.log(data),\n  onError: (error) => console.error(error.message),\n});`;
  }
  const made = `await ${call}.${type === 'query' ? 'query' : 'mutate'}(${argument})`;
  return endpoint?.status === 204 ? `${head}${made};` : `${head}const result = ${made};\nconsole.log(result);`;
}

/** For what the typed client cannot carry: files and logs. */
function plainFetch(operation: ReferenceOperation, request: ExampleRequest): string {
  const { method, path, body, isForm, result } = sentBy(operation, request);
  const options = [`  headers: { Authorization: \`Bearer \${process.env.DATA_PIPELINES_KEY}\` },`];
  if (method !== 'GET') options.unshift(`  method: '${method}',`);
  let before = '';
  if (isForm) {
    before = `import { openAsBlob } from 'node:fs';\n\nconst body = new FormData();\n`;
    for (const [name, file] of Object.entries(body as object))
      before += `body.append('${name}', await openAsBlob('${file}'), '${file}');\n`;
    options.push('  body,');
  }
  const response = `const response = await fetch(\`\${process.env.DATA_PIPELINES_URL}${path}\`, {\n${options.join('\n')}\n});
if (!response.ok) throw new Error(await response.text());`;
  const use = {
    none: '',
    json: '\nconsole.log(await response.json());',
    text: '\nconsole.log(await response.text());',
  };
  return `${before}${response}${use[result as keyof typeof use]}`;
}

function python(operation: ReferenceOperation, request: ExampleRequest): string {
  const { method, path, body, isForm, isPublic, result } = sentBy(operation, request);
  const options = [`    f"{os.environ['DATA_PIPELINES_URL']}${path}",`];
  const headers = isPublic ? [] : [`"Authorization": f"Bearer {os.environ['DATA_PIPELINES_KEY']}"`];
  if (result === 'events') headers.push('"Accept": "text/event-stream"');
  if (headers.length > 0) options.push(`    headers={${headers.join(', ')}},`);
  if (isForm) {
    const files = Object.entries(body as object).map(([name, file]) => `"${name}": open("${file}", "rb")`);
    options.push(`    files={${files.join(', ')}},`);
  } else if (body !== undefined) options.push(`    json=${literal(body, PYTHON, 4)},`);
  if (result === 'events') options.push('    stream=True,');
  const use = {
    json: '\nprint(response.json())',
    text: '\nprint(response.text)',
    events: '\nfor line in response.iter_lines(decode_unicode=True):\n    print(line)',
    none: '',
  };
  return `import os

import requests

response = requests.${method.toLowerCase()}(
${options.join('\n')}
)
response.raise_for_status()${use[result]}`;
}
