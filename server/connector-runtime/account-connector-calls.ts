import type { AccountConnectorRow } from '../../db/schema/index.ts';
import type {
  Cell,
  CheckResult,
  Dataset,
  Field,
  ReadRequest,
  Recorder,
  RequestRecord,
  ResponseRecord,
  SampledTable,
  StreamSchema,
  TableSample,
} from '../connectors/contract/connector.ts';
import { ConnectorError, TimeoutError } from '../connectors/contract/errors.ts';
import { fixOf } from '../connectors/contract/fixes.ts';
import type { Deps } from '../deps.ts';
import type { BuiltConnector } from './build-connector.ts';
import { callConnector } from './call-connector.ts';
import type { ConnectorItem, Exchanged, Sample, SampleRequest } from './connector-job.ts';
import { redactorOf } from './connector-secrets.ts';
import type { SecretUse } from './secret-uses.ts';
import { type ConnectorHooks, openConnector } from './open-connector.ts';
import { loggedBody } from './network-log/logged-body.ts';
import { SILENT, watchTunnel } from './tunnel-check.ts';

/** A caller waits for the result. */
const INTERACTIVE = { ms: 20_000, cpu_ms: 10_000 };
const DISCOVERY_CPU_MS = 120_000;

/** Network logs belong to streams; checks, discoveries and what streams share have none. */
export const UNRECORDED: Recorder = { start: () => SILENT };

/** `host_key_fingerprint`: host key of an SSH server seen for the first time. The caller stores it. */
export interface TestResult {
  result: CheckResult;
  error: ConnectorError | null;
  host_key_fingerprint: string | null;
}

/**
 * Runs the connector's check, for at most 20 s. Failures of the remote system are returned in `error`, not thrown.
 * `schema`: the destination schema of a connection; null: the default one.
 */
export async function testAccountConnector(
  deps: Deps,
  row: AccountConnectorRow,
  { actor, schema = null }: { actor: SecretUse['actor']; schema?: string | null },
): Promise<TestResult> {
  const tunnel = watchTunnel();
  let host_key_fingerprint: string | null = null;
  const hostKey = (fingerprint: string) => {
    host_key_fingerprint = fingerprint;
  };
  try {
    const use = { purpose: 'test' as const, actor };
    const options = { ...INTERACTIVE, hostKey, recorder: tunnel.recorder, use };
    const items = await callConnector(deps, row, { operation: 'check', schema }, options);
    const checks = items.flatMap(({ check }) => check?.checks ?? []);
    return { result: { checks: tunnel.steps(null, checks) }, error: null, host_key_fingerprint };
  } catch (thrown) {
    const error = presentable(deps, row, thrown);
    const checks = [{ title: 'Connection', status: 'failed' as const, message: error.message, ...fixOf(error) }];
    return { result: { checks: tunnel.steps(error, checks) }, error, host_key_fingerprint };
  }
}

/** Calls one of the connector's `possibleValues`; the result maps values to labels. @throws ConnectorError */
export async function possibleValues(
  deps: Deps,
  row: AccountConnectorRow,
  { parameter, actor }: { parameter: string; actor: SecretUse['actor'] },
): Promise<Record<string, string>> {
  try {
    const options = { ...INTERACTIVE, use: { purpose: 'possible_values' as const, actor } };
    const items = await callConnector(deps, row, { operation: 'possible_values', parameter }, options);
    return items[0]?.values ?? {};
  } catch (error) {
    throw presentable(deps, row, error);
  }
}

/** The first rows of a stream. @throws ConnectorError */
export async function sampleRows(
  deps: Deps,
  row: AccountConnectorRow,
  { actor, ...request }: SampleRequest & { actor: SecretUse['actor'] },
): Promise<Sample> {
  try {
    const options = { ...INTERACTIVE, use: { purpose: 'preview' as const, actor } };
    const items = await callConnector(deps, row, { operation: 'sample', ...request }, options);
    return items[0]?.sample ?? { rows: [], skipped: 0, estimated_rows: null };
  } catch (error) {
    throw presentable(deps, row, error);
  }
}

/** The columns and first rows of a query. @throws ConnectorError */
export async function sampleDataset(
  deps: Deps,
  row: AccountConnectorRow,
  { actor, ...request }: { dataset: Dataset; limit: number; actor: SecretUse['actor'] },
): Promise<{ fields: Field[]; sample: Sample }> {
  try {
    const options = { ...INTERACTIVE, use: { purpose: 'preview' as const, actor } };
    const items = await callConnector(deps, row, { operation: 'sample_dataset', ...request }, options);
    const { fields, sample } = Object.assign({}, ...items) as ConnectorItem;
    return { fields: fields ?? [], sample: sample ?? { rows: [], skipped: 0, estimated_rows: null } };
  } catch (error) {
    throw presentable(deps, row, error);
  }
}

/** The first rows of a table of a destination. @throws ConnectorError */
export async function sampleTable(
  deps: Deps,
  row: AccountConnectorRow,
  { sample, actor }: { sample: TableSample; actor: SecretUse['actor'] },
): Promise<SampledTable> {
  try {
    const options = { ...INTERACTIVE, use: { purpose: 'preview' as const, actor } };
    const items = await callConnector(deps, row, { operation: 'sample_table', sample }, options);
    return items[0]?.table ?? { columns: [], rows: [] };
  } catch (error) {
    throw presentable(deps, row, error);
  }
}

/** Time for a read of a whole stream while a caller waits. Requests end after 30 s. */
const WHOLE_READ = { ms: 25_000, cpu_ms: 25_000 };

/** All rows of a stream, batch by batch. @throws ConnectorError */
export async function readRows(
  deps: Deps,
  row: AccountConnectorRow,
  { request, actor, take }: { request: ReadRequest; actor: SecretUse['actor']; take(rows: Cell[][]): void },
): Promise<void> {
  const onItem = ({ rows }: ConnectorItem) => rows && take(rows);
  try {
    const options = { ...WHOLE_READ, use: { purpose: 'preview' as const, actor }, onItem };
    await callConnector(deps, row, { operation: 'rows', request }, options);
  } catch (error) {
    throw presentable(deps, row, error);
  }
}

/** A first page with everything redacted, and the error that ended it. */
export interface PageTrialResult {
  exchanges: Exchanged[];
  page: NonNullable<ConnectorItem['tried']>['page'];
  error: ConnectorError | null;
}

/** Reads the first page of a stream, for settings that may not be stored. Failures of the remote system are returned. */
export async function tryPage(
  deps: Deps,
  row: AccountConnectorRow,
  { stream_name, actor }: { stream_name: string | null; actor: SecretUse['actor'] },
): Promise<PageTrialResult> {
  const redactor = redactorOf(deps, [row]);
  const request = (one: RequestRecord): RequestRecord => ({
    method: one.method,
    url: redactor.url(one.url),
    query: redactor.query(one.query ?? {}),
    headers: redactor.headers(one.headers ?? {}),
    body: loggedBody(one, redactor).body,
  });
  const response = (one: ResponseRecord): ResponseRecord => ({
    status: one.status,
    headers: redactor.headers(one.headers ?? {}),
    body: loggedBody(one, redactor).body,
  });
  let tried: ConnectorItem['tried'];
  let error: ConnectorError | null = null;
  try {
    const onItem = (item: ConnectorItem) => void (tried = item.tried);
    const options = { ...INTERACTIVE, use: { purpose: 'preview' as const, actor }, onItem };
    await callConnector(deps, row, { operation: 'try_page', stream_name }, options);
  } catch (thrown) {
    error = presentable(deps, row, thrown);
  }
  const { exchanges = [], page = null } = tried ?? {};
  return {
    exchanges: exchanges.map((one) => ({
      request: request(one.request),
      response: one.response && response(one.response),
    })),
    page: page && {
      ...page,
      records: page.records.map((one) => redactor.text(one)),
      next: page.next && request(page.next),
    },
    error,
  };
}

/** The streams of a source now. @param known see `ConnectorContext` @throws as `callConnector` */
export async function discoverStreams(
  deps: Deps,
  row: AccountConnectorRow,
  { ms, actor, known }: { ms: number; actor: SecretUse['actor']; known: readonly StreamSchema[] },
): Promise<StreamSchema[]> {
  const options = { ms, cpu_ms: DISCOVERY_CPU_MS, use: { purpose: 'discovery' as const, actor } };
  const items = await callConnector(deps, row, { operation: 'discover', known }, options);
  return items.flatMap(({ stream }) => stream ?? []);
}

/**
 * Opens the connector in this process for one piece of work of at most `ms` milliseconds, then closes everything it opened.
 * For workers alone: a connector may block the process.
 * @throws what the connector throws, or TimeoutError `check_timeout`; pass it through `presentable` before users see it
 */
export async function withConnector<Result>(
  deps: Deps,
  row: AccountConnectorRow,
  { ms, use, warn = () => {} }: { ms: number; use: SecretUse; warn?: ConnectorHooks['warn'] },
  work: (opened: BuiltConnector) => Promise<Result>,
): Promise<Result> {
  const abort = new AbortController();
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const error = new TimeoutError('check_timeout', `No response within ${ms / 1000} s`);
    abort.abort(error);
    timeout.reject(error);
  }, ms);
  const cleanUps: (() => Promise<void>)[] = [];
  const cleanUp = (end: () => Promise<void>) => void cleanUps.push(end);
  const { signal } = abort;
  const hooks = { use, recorder: UNRECORDED, signal, cleanUp, warn, rateLimited: () => {} };
  try {
    return await Promise.race([openConnector(deps, row, hooks).then(work), timeout.promise]);
  } finally {
    clearTimeout(timer);
    abort.abort();
    await Promise.allSettled(cleanUps.map((end) => end()));
  }
}

/** The error with the row's secrets redacted. */
export function presentable(deps: Deps, row: AccountConnectorRow, thrown: unknown): ConnectorError {
  const redactor = redactorOf(deps, [row]);
  if (thrown instanceof ConnectorError) {
    thrown.message = redactor.text(thrown.message);
    return thrown;
  }
  deps.log.error({ err: thrown, account_connector_id: row.id }, 'unexpected connector error');
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return new ConnectorError('unexpected_error', redactor.text(text));
}
