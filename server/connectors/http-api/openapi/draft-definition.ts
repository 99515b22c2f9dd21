import { ConfigurationError } from '../../contract/errors.ts';
import type { DefinitionDraft } from '../../contract/connector.ts';
import { parseYaml } from '../../kits/rest/document.ts';
import { referencesIn } from '../../kits/rest/template.ts';
import { parseDefinition } from '../parse-definition.ts';
import { draftAuthentication } from './authentication.ts';
import { type Json, listOf, objectOf, OpenApiDocument, textOf } from './document.ts';
import { listOperations } from './operations.ts';
import { type DraftedStream, draftStreams } from './streams.ts';

const MAX_STREAMS = 500;

/**
 * Drafts a definition from an OpenAPI 3 or Swagger 2 document: a stream for each GET operation that returns a list. What
 * the document does not say is guessed from the names of parameters and fields.
 * @throws ConfigurationError `invalid_openapi`, `no_lists`
 */
export function draftDefinition(text: string): DefinitionDraft {
  const document = openDocument(text);
  const { lists, left_out } = listOperations(document);
  const drafted = draftStreams(document, lists);
  const streams = drafted.streams.slice(0, MAX_STREAMS);
  if (streams.length === 0) {
    throw new ConfigurationError('no_lists', 'The document describes no GET operation that returns a list of records');
  }
  const { authentication, assumption } = draftAuthentication(document);
  const definition = written(document, { authentication, assumption, streams });
  const { problem } = parseDefinition(definition);
  if (problem !== null) throw new ConfigurationError('invalid_openapi', `No definition can be drafted: ${problem}`);
  const values = (root: string) =>
    [...new Set(referencesIn(definition))].filter((one) => one.startsWith(root)).map((one) => one.slice(root.length));
  const beyond = drafted.streams.slice(MAX_STREAMS).map(({ path }) => ({
    path,
    reason: `A definition has at most ${MAX_STREAMS} streams`,
  }));
  return {
    definition,
    assumptions: [assumption],
    streams: streams.map(({ definition: { name }, path, assumptions }) => ({ name, path, assumptions })),
    left_out: [...left_out, ...drafted.left_out, ...beyond],
    config: values('config.'),
    secrets: values('secrets.'),
  };
}

function openDocument(text: string): OpenApiDocument {
  const root = objectOf(parsed(text));
  const version = textOf(root.openapi) || textOf(root.swagger);
  if (!/^(3\.|2\.0)/.test(version)) {
    throw new ConfigurationError('invalid_openapi', 'Not an OpenAPI 3 or Swagger 2 document: it has no such version');
  }
  return new OpenApiDocument(root);
}

/** JSON is parsed as such: the YAML parser takes several times as long. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const { document, problem } = parseYaml(text);
    if (!document) throw new ConfigurationError('invalid_openapi', problem);
    return document.value;
  }
}

interface Drafted {
  authentication: Json | null;
  assumption: string;
  streams: readonly DraftedStream[];
}

function written(document: OpenApiDocument, { authentication, assumption, streams }: Drafted): string {
  const { Document, isMap, isScalar, isSeq } = require('yaml') as typeof import('yaml');
  const content = {
    base_url: baseUrlOf(document.root),
    ...(authentication && { authentication }),
    streams: streams.map(({ definition }) => definition),
  };
  const yaml = new Document(content, { aliasDuplicateObjects: false });
  const about = 'Drafted from an OpenAPI document. Confirm the comments, and remove streams that are not needed.';
  yaml.commentBefore = ` ${authentication ? about : `${about}\n ${inLine(assumption)}`}`;
  for (const { key } of isMap(yaml.contents) ? yaml.contents.items : []) {
    if (isScalar(key) && key.value === 'authentication') key.commentBefore = ` ${inLine(assumption)}`;
  }
  const list = yaml.get('streams');
  if (isSeq(list)) {
    for (const [index, item] of list.items.entries()) {
      if (isMap(item)) item.commentBefore = streams[index]!.assumptions.map((one) => ` ${inLine(one)}`).join('\n');
    }
  }
  return yaml.toString({ lineWidth: 0 });
}

const inLine = (text: string) => text.replaceAll(/\s+/g, ' ');

/** Without a server in the document, or with one relative to it, the address is a setting. */
function baseUrlOf(root: Json): string {
  const [server] = listOf(root.servers).map(objectOf);
  const variables = objectOf(server?.variables);
  const url = server ? textOf(server.url) : swaggerUrl(root);
  const filled = url.replaceAll(/\{([^{}]+)\}/g, (_, name: string) => {
    const { default: value } = objectOf(variables[name]);
    return typeof value === 'string' && value !== '' ? value : `{{ config.${name.replaceAll(/[^\w-]+/g, '_')} }}`;
  });
  const whole = /^https?:\/\//.test(filled) ? filled : `{{ config.base_url }}/${filled.replace(/^\/+/, '')}`;
  return whole.replace(/\/+$/, '');
}

function swaggerUrl(root: Json): string {
  const host = textOf(root.host);
  const scheme = listOf(root.schemes).includes('http') && !listOf(root.schemes).includes('https') ? 'http' : 'https';
  return host === '' ? textOf(root.basePath) : `${scheme}://${host}${textOf(root.basePath)}`;
}
