import type { AnyConnector } from '../../../connectors/contract/connector.ts';
import { keyedAddressNames, type ParameterProblem } from '../../../connectors/contract/parameters.ts';
import { maskAddress } from '../../../platform/keyed-address.ts';
import { MASK } from '../../../platform/mask.ts';

/** One address, or a list of them, with credentials masked. Without credentials: the very same value. */
export function maskAddresses(value: unknown): unknown {
  if (typeof value === 'string') {
    const masked = maskAddress(value);
    return masked === value ? value : masked;
  }
  if (!Array.isArray(value)) return value;
  const masked = value.map(maskAddresses);
  return masked.every((one, at) => one === value[at]) ? value : masked;
}

/** Restores the stored addresses where the masked ones were sent back; a list may be in another order. */
export function unmaskAddresses(given: unknown, current: unknown): unknown {
  if (!Array.isArray(given)) return maskAddresses(current) === given ? current : given;
  const stored = Array.isArray(current) ? (current as unknown[]) : [];
  return given.map((one, at) => {
    const isOriginal = (value: unknown) => maskAddresses(value) === one;
    return isOriginal(stored[at]) ? stored[at] : (stored.find(isOriginal) ?? one);
  });
}

/** The addresses that were edited and still contain the mask. */
export const maskedAddressProblems = (connector: AnyConnector, all: Record<string, unknown>): ParameterProblem[] =>
  keyedAddressNames(connector.config)
    .filter((name) => [all[name]].flat().some((value) => typeof value === 'string' && value.includes(MASK)))
    .map((parameter) => ({
      parameter,
      code: 'invalid_parameter',
      message: `${parameter} contains the mask of a stored value. Enter the whole address`,
    }));
