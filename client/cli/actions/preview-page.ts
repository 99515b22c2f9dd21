import type { ApiClient } from '../../api.ts';
import type { Cli } from '../context.ts';
import { CommandError } from '../exit.ts';
import { number } from '../style.ts';
import { showThing } from '../table.ts';
import { find, givenValues } from './account-connectors.ts';

export interface Previewing {
  json: boolean;
  stream?: string;
  connector?: string;
  set?: readonly string[];
  file?: string;
}
interface Asked {
  flags: Previewing;
  /** Name, prefix or id of a stored source. Absent: the settings are those given alone. */
  wanted?: string;
}
type Trial = Awaited<ReturnType<ApiClient['account_connectors']['tryPage']['mutate']>>;

const MAX_SHOWN_RECORDS = 3;

/** Reads the first page of a stream, for a definition that is being written. */
export async function previewPage(cli: Cli, { flags, wanted }: Asked): Promise<void> {
  const api = await cli.api();
  const stored = wanted === undefined ? null : await find(api, { type: 'source', wanted });
  const connector_name = stored?.connector_name ?? flags.connector ?? 'http_api';
  const connector = await api.connectors.get.query({ connector_type: 'source', connector_name });
  const trial = await api.account_connectors.tryPage.mutate({
    ...(stored && { account_connector_id: stored.id }),
    connector_name,
    parameters: await givenValues(connector, flags),
    ...(flags.stream !== undefined && { stream_name: flags.stream }),
  });
  showThing(cli, trial, { json: flags.json, lines: linesOf(trial) });
  if (trial.error) throw new CommandError('failed', `${trial.error.message} (${trial.error.code})`);
}

function linesOf({ exchanges, records_found, records, fields, next_request: next }: Trial): Record<string, string> {
  const sent = exchanges.map(
    ({ request, response }) => `${requestText(request)}  ${response ? (response.status ?? '–') : 'no response'}`,
  );
  return {
    requests: sent.join('\n') || '–',
    records: [number(records_found), ...records.slice(0, MAX_SHOWN_RECORDS)].join('\n'),
    fields:
      fields.map(({ name, type, is_primary_key }) => `${name} ${type}${is_primary_key ? ' key' : ''}`).join('\n') ||
      '–',
    'next page': next ? requestText(next) : 'none',
  };
}

function requestText({ method, url, query }: Trial['exchanges'][number]['request']): string {
  const search = new URLSearchParams(query).toString();
  return `${method} ${url}${search === '' || url.includes('?') ? '' : `?${search}`}`;
}
