import { stringify } from 'yaml';
import type { ApiClient } from '../../api.ts';
import {
  connectionBody,
  connectorBody,
  parameterDefaults,
  type Style,
  triggerBody,
  triggerRequestBody,
} from '../../pipeline-file/bodies.ts';
import type { Body, Kind } from '../../pipeline-file/keys.ts';

// Not those of the console's client: tests without a browser use this file, too.
type Answer<Procedure extends { query: (...input: never[]) => unknown }> = Awaited<ReturnType<Procedure['query']>>;

/** An item of the account, as the service returns it. */
export type CodeItem =
  | { kind: 'connector'; item: Answer<ApiClient['account_connectors']['get']> }
  | { kind: 'connection'; item: Answer<ApiClient['connections']['get']> }
  | { kind: 'trigger'; item: Answer<ApiClient['automation']['getTrigger']> };

/** What gives names to ids, and defaults to parameters. */
export interface Known {
  connectors: Answer<ApiClient['connectors']['list']>;
  nameOf(id: unknown): string | undefined;
}

export type SampleLanguage = 'yaml' | 'cli' | 'curl' | 'typescript';

// Of a private use area, which no name has.
const [OPEN, CLOSE] = ['\uE000', '\uE001'];
const JSON_STYLE: Style = { variable: (name) => `${OPEN}${name}${CLOSE}`, text: (value) => value };
const VARIABLE = /\uE000(\w+)\uE001/g;

/** How to create the item again: secrets are variables of the environment. */
export function samplesOf(one: CodeItem, known: Known): Record<SampleLanguage, string> {
  const yaml = stringify(fileOf(one, known), { lineWidth: 100 });
  const { path, procedure, body } = requestOf(one, known);
  const json = JSON.stringify(body, null, 2);
  return {
    yaml,
    cli: `data-pipelines apply -f - <<'YAML'\n${yaml}YAML\n`,
    curl: `curl -X POST "$DATA_PIPELINES_URL${path}" \\
  -H "Authorization: Bearer $DATA_PIPELINES_KEY" \\
  -H "Content-Type: application/json" \\
  -d @- <<JSON\n${forShell(json)}\nJSON\n`,
    typescript: `import { createApiClient } from 'data-pipelines-client';

const api = createApiClient(process.env.DATA_PIPELINES_URL, process.env.DATA_PIPELINES_KEY);
await api.${procedure}.mutate(${forTypeScript(json)});
`,
  };
}

/** A file for `apply`. */
function fileOf(one: CodeItem, known: Known): Body {
  const of = (kind: Kind, body: Body) => ({ version: 1, [kind]: { [one.item.name]: body } });
  if (one.kind === 'connection') return of('connections', connectionBody(one.item));
  if (one.kind === 'trigger') return of('triggers', triggerBody(one.item, known.nameOf));
  const kind = one.item.connector_type === 'source' ? 'sources' : 'destinations';
  return of(kind, connectorBody(one.item, parameterDefaults(one.item, known.connectors)));
}

function requestOf(one: CodeItem, { connectors }: Known): { path: string; procedure: string; body: Body } {
  const { name } = one.item;
  if (one.kind === 'trigger') {
    const body = { name, ...triggerRequestBody(one.item, JSON_STYLE) };
    return { path: '/automation/triggers', procedure: 'automation.createTrigger', body };
  }
  if (one.kind === 'connection') {
    const { source_id, destination_id } = one.item;
    const { source: _source, destination: _destination, ...settings } = connectionBody(one.item, JSON_STYLE);
    const body = { name, source_id, destination_id, ...settings };
    return { path: '/connections', procedure: 'connections.create', body };
  }
  const { connector_type, connector_name } = one.item;
  const { connector: _name, ...settings } = connectorBody(
    one.item,
    parameterDefaults(one.item, connectors),
    JSON_STYLE,
  );
  const body = { name, connector_type, connector_name, ...settings };
  return { path: '/account_connectors', procedure: 'account_connectors.create', body };
}

/** Within a here-document, in which the shell replaces variables. */
const forShell = (json: string) =>
  json.replaceAll(/[\\$`]/g, (character) => `\\${character}`).replaceAll(VARIABLE, (_, name) => `\${${name}}`);

/** A whole value becomes an expression, a part of one a template. */
const forTypeScript = (json: string) =>
  json
    .replaceAll(/"\uE000(\w+)\uE001"/g, (_, name) => `process.env.${name}`)
    .replaceAll(/"(?:[^"\\\n]|\\.)*\uE000(?:[^"\\\n]|\\.)*"/g, (text) => asTemplate(JSON.parse(text) as string));

const asTemplate = (text: string) =>
  `\`${text.replaceAll(/[\\`]|\$(?=\{)/g, (character) => `\\${character}`).replaceAll(VARIABLE, (_, name) => `\${process.env.${name}}`)}\``;
