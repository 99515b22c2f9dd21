import type { AccountConnectorRow } from '../../../../db/schema/index.ts';
import type {
  AdvancedSequence,
  LogMark,
  SourceSequence,
  StreamSchema,
  WantedSequence,
} from '../../../connectors/contract/connector.ts';
import type { Deps } from '../../../deps.ts';
import { presentable } from '../../../connector-runtime/account-connector-calls.ts';
import { callConnector } from '../../../connector-runtime/call-connector.ts';
import type { ConnectorCall, ConnectorItem } from '../../../connector-runtime/connector-job.ts';
import type { SecretUse } from '../../../connector-runtime/secret-uses.ts';

/** The application waits. */
const TIME = { ms: 20_000, cpu_ms: 10_000 };

interface OfTables {
  tables: readonly Pick<StreamSchema, 'namespace' | 'name'>[];
  actor: SecretUse['actor'];
}

const named = ({ tables }: OfTables) => tables.map(({ namespace, name }) => ({ namespace, name }));

/** @throws ConnectorError */
export async function markSourceLog(deps: Deps, source: AccountConnectorRow, of: OfTables): Promise<LogMark> {
  const { mark } = await call(deps, source, { operation: 'mark_log', tables: named(of) }, of.actor);
  return mark!;
}

/** @throws ConnectorError */
export async function sequencesOfSource(
  deps: Deps,
  source: AccountConnectorRow,
  of: OfTables,
): Promise<SourceSequence[]> {
  const { sequences } = await call(deps, source, { operation: 'sequences', tables: named(of) }, of.actor);
  return sequences!;
}

/** @throws ConnectorError */
export async function advanceDestination(
  deps: Deps,
  destination: AccountConnectorRow,
  wanted: {
    schema: string | null;
    sequences: WantedSequence[];
    dry_run: boolean;
    actor: SecretUse['actor'];
  },
): Promise<AdvancedSequence[]> {
  const { actor, ...rest } = wanted;
  const { advanced } = await call(deps, destination, { operation: 'advance_sequences', ...rest }, actor);
  return advanced!;
}

async function call(
  deps: Deps,
  row: AccountConnectorRow,
  job: ConnectorCall,
  actor: SecretUse['actor'],
): Promise<ConnectorItem> {
  try {
    const [item] = await callConnector(deps, row, job, { ...TIME, use: { purpose: 'change_log', actor } });
    return item!;
  } catch (error) {
    throw presentable(deps, row, error);
  }
}
