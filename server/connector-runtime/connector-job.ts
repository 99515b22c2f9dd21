import type { ChatChannel } from '../connectors/contract/chat.ts';
import type {
  AdvancedSequence,
  Cell,
  CheckResult,
  ConnectorOutline,
  ConsentAnswer,
  ConsentRequest,
  Dataset,
  DefinitionDraft,
  Field,
  LogMark,
  ReadRequest,
  RequestRecord,
  ResponseRecord,
  SampledTable,
  SourceSequence,
  StreamSchema,
  TableSample,
  WantedSequence,
} from '../connectors/contract/connector.ts';
import type { ParsedParameters } from '../connectors/contract/parameters.ts';
import type { ConnectorSettings } from './build-connector.ts';

/** A read of the first rows of a stream. */
export interface SampleRequest {
  request: ReadRequest;
  limit: number;
}

export interface Sample {
  rows: Cell[][];
  /** Rows before the last one that were left out because of their size. */
  skipped: number;
  /** Of the whole read; null: unknown. */
  estimated_rows: number | null;
}

/** A request and its response. */
export interface Exchanged {
  request: RequestRecord;
  response: ResponseRecord | null;
}

/** A call of a connector in a process of its own. */
export type ConnectorCall =
  | { operation: 'check'; schema: string | null }
  | { operation: 'discover'; known: readonly StreamSchema[] }
  | { operation: 'channels' }
  | ({ operation: 'sample' } & SampleRequest)
  | { operation: 'rows'; request: ReadRequest }
  | { operation: 'sample_dataset'; dataset: Dataset; limit: number }
  | { operation: 'sample_table'; sample: TableSample }
  | { operation: 'try_page'; stream_name: string | null }
  | { operation: 'possible_values'; parameter: string }
  | { operation: 'mark_log' | 'sequences'; tables: Pick<StreamSchema, 'namespace' | 'name'>[] }
  | { operation: 'advance_sequences'; schema: string | null; sequences: WantedSequence[]; dry_run: boolean }
  | { operation: 'consent_page'; request: ConsentRequest }
  | { operation: 'consent_tokens'; answer: ConsentAnswer };

export type CallJob = ConnectorCall & {
  settings: ConnectorSettings;
  /** The clock of the service. */
  now_ms: number;
};

/** Validates settings that contain a document. */
export interface ParseJob extends Pick<ConnectorSettings, 'type' | 'name' | 'parameters'> {
  operation: 'parse';
}

/** Drafts the definition of an API. */
export interface DraftJob {
  operation: 'draft';
  name: string;
  openapi: string;
}

/** Outlines the documents among the parameters. */
export interface OutlineJob extends Pick<ConnectorSettings, 'name' | 'parameters'> {
  operation: 'outline';
}

export type ConnectorJob = CallJob | ParseJob | DraftJob | OutlineJob;

/** Part of the result. A discovery gives an item per stream, a read one per batch, the others one item. */
export interface ConnectorItem {
  check?: CheckResult;
  stream?: StreamSchema;
  values?: Record<string, string>;
  channels?: ChatChannel[];
  sample?: Sample;
  /** Precedes the sample of a dataset. */
  fields?: Field[];
  table?: SampledTable;
  rows?: Cell[][];
  /** The requests so far, and the page once it is read. Neither is redacted. */
  tried?: {
    exchanges: Exchanged[];
    page: { records: string[]; found: number; fields: Field[]; next: RequestRecord | null } | null;
  };
  parsed?: ParsedParameters;
  drafted?: DefinitionDraft;
  outlined?: ConnectorOutline;
  mark?: LogMark;
  sequences?: SourceSequence[];
  advanced?: AdvancedSequence[];
  consent_page?: string;
  consent_tokens?: Record<string, unknown>;
}

export interface LockedSecret {
  lock: number;
  current: string | null;
}
