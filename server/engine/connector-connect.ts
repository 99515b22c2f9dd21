import type { Connect } from '../connectors/connecting.ts';
import { ConfigurationError } from '../connectors/errors.ts';
import { guardedConnect } from '../lib/guarded-connect.ts';
import { EgressError, type EgressRules } from '../lib/net-guard.ts';

/** Connections of connectors, to addresses that the rules allow. */
export function directConnect(rules: EgressRules, signal: AbortSignal): Connect {
  return async (target) => {
    try {
      return await guardedConnect(target, rules, { timeout_ms: target.timeout_ms, signal: target.signal ?? signal });
    } catch (error) {
      throw error instanceof EgressError ? new ConfigurationError(error.code, error.message) : error;
    }
  };
}
