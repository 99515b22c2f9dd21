import type { AccountConnectorRow, StreamRow } from '../../db/schema/index.ts';
import type { AnySource, StreamSchema } from '../connectors/contract/connector.ts';
import type { Deps } from '../deps.ts';
import type { SecretUse } from '../connector-runtime/secret-uses.ts';
import { presentable, withConnector } from '../connector-runtime/account-connector-calls.ts';
import type { ExportedStream } from './document.ts';
import { createMapper } from '../transfer/mapping.ts';
import { applyOverrides, type Overrides, withCatalogChoices } from '../pipeline/overrides.ts';
import { fieldName, planTransfer, readRequest } from '../pipeline/transfer-plan.ts';

const ROWS = 5;
const CHARACTERS = 200;
const STREAM_MS = 60_000;

/** A stream with default settings: samples need no connection. */
const DEFAULT_STREAM = {
  sync_mode: 'full_refresh',
  fields: [],
  filters: [],
  primary_key: null,
  cursor_field: null,
  state: null,
} as unknown as StreamRow;

/**
 * Adds values of the first rows to the fields as a run would load them: masked, and without excluded fields. When the
 * stream cannot be read, `sample_error` has the reason.
 */
export async function addSamples(
  deps: Deps,
  row: AccountConnectorRow,
  input: { discovered: StreamSchema; overrides: Overrides; exported: ExportedStream; use: SecretUse },
): Promise<void> {
  const { discovered, overrides, exported } = input;
  try {
    const samples = await withConnector(deps, row, { ms: STREAM_MS, use: input.use }, async ({ connector, ctx }) => {
      const source = connector as AnySource;
      const schema = applyOverrides(discovered, overrides);
      const stream = withCatalogChoices(DEFAULT_STREAM, discovered, overrides);
      const plan = planTransfer({ source, schema, stream });
      const request = readRequest({ plan, schema, stream, state: null, window: null });
      const map = createMapper(plan, deps.secrets.maskKeys(row.account_id));
      const names = plan.columns.map((column) => fieldName(column.field.path));
      for await (const batch of source.read(ctx, request)) {
        const { rows } = map({ ...batch, rows: batch.rows.slice(0, ROWS) });
        return new Map(names.map((name, index) => [name, rows.flatMap((cells) => cells[index] ?? [])]));
      }
      return new Map(names.map((name) => [name, []]));
    });
    for (const field of exported.fields ?? []) {
      const values = samples.get(field.name);
      if (values) field.samples = values.map((value: string) => value.slice(0, CHARACTERS));
    }
  } catch (error) {
    exported.sample_error = presentable(deps, row, error).message;
  }
}
