import { isApiError } from '../../api.ts';
import { UsageError } from '../exit.ts';
import type { Wanted } from './document.ts';

interface Finding {
  code: string;
  message: string;
  field: string | null;
}

/** Adds the locations in the file to an error of the service. */
export function withLocation(one: Wanted, error: unknown): unknown {
  if (!isApiError(error) || error.status === null || error.status === 401 || error.status >= 500) return error;
  const { field, findings } = error.context;
  const problems = error.problems.map(({ loc, msg }) => `${one.at(loc.slice(1))}: ${loc.slice(1).join('.')}: ${msg}`);
  const about = ({ code, message, field: path }: Finding) =>
    `${one.at(pathInFile(path))}: ${message} (${code}, request ${error.request_id})`;
  const whole = { code: error.code, message: error.message, field: typeof field === 'string' ? field : null };
  const found = Array.isArray(findings) ? (findings as (Finding & { stream_name: string })[]) : [];
  const several = found.map((finding) => about({ ...finding, message: `${finding.stream_name}: ${finding.message}` }));
  const lines = problems.length > 0 ? problems : several.length > 0 ? several : [about(whole)];
  return new UsageError(lines.join('\n'));
}

/** The file has names of its own for some keys of the API. */
const pathInFile = (field: string | null): string[] =>
  field === 'connector_name' ? ['connector'] : (field?.split('.') ?? []);
