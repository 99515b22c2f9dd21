import type { ChatChannel } from '../connectors/contract/chat.ts';
import type { CheckResult, StreamSchema } from '../connectors/contract/connector.ts';
import type { ParsedParameters } from '../connectors/contract/parameters.ts';
import type { ConnectorSettings } from './build-connector.ts';

/** A call of a connector in a process of its own. */
export type ConnectorCall =
  | { operation: 'check' | 'discover' | 'channels' }
  | { operation: 'possible_values'; parameter: string };

export type CallJob = ConnectorCall & {
  settings: ConnectorSettings;
  /** The clock of the service. */
  now_ms: number;
};

/** Validates settings that contain a document. */
export interface ParseJob extends Pick<ConnectorSettings, 'type' | 'name' | 'parameters'> {
  operation: 'parse';
}

export type ConnectorJob = CallJob | ParseJob;

/** Part of the result. A discovery gives an item per stream, the others one item. */
export interface ConnectorItem {
  check?: CheckResult;
  stream?: StreamSchema;
  values?: Record<string, string>;
  channels?: ChatChannel[];
  parsed?: ParsedParameters;
}

export interface LockedSecret {
  lock: number;
  current: string | null;
}
