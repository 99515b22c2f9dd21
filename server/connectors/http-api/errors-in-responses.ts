import { parseExactly } from '../cells/json-line.ts';
import type { DescribedError } from '../kits/rest/client.ts';
import { selectorOf } from '../kits/rest/selector.ts';
import type { HttpResponse } from '../kits/rest/send.ts';
import type { Definition, StreamDefinition } from './definition.ts';

export interface ErrorJudge {
  /** The error that a response with the status of a success describes; null: none. */
  errorIn(response: HttpResponse): DescribedError | null;
  /** Whether the response counts as one without records. */
  ignores(json: unknown): boolean;
}

const isSelected = (value: unknown) =>
  value !== null &&
  value !== undefined &&
  value !== false &&
  value !== '' &&
  (typeof value !== 'object' || Object.keys(value).length > 0);

/** Applies the error rules of the definition, then those of the stream. The first one that matches decides. */
export function errorJudge({ errors }: Pick<Definition, 'errors'>, stream: StreamDefinition): ErrorJudge {
  const rules = [...errors, ...(stream.errors ?? [])].map((rule) => ({
    ...rule,
    when: selectorOf(rule.when),
    message: rule.message === undefined ? null : selectorOf(rule.message),
  }));
  const matching = (json: unknown) => rules.find(({ when }) => isSelected(when(json)));
  return {
    ignores: (json) => matching(json)?.action === 'ignore',
    errorIn(response) {
      if (rules.length === 0) return null;
      const json = jsonOf(response);
      const rule = matching(json);
      if (!rule || rule.action === 'ignore') return null;
      const found = rule.message?.(json) ?? rule.when(json);
      const message = typeof found === 'string' ? found : JSON.stringify(found);
      return { message, retryable: rule.action === 'retry' };
    },
  };
}

/** A body that is not JSON is reported where it is read. */
function jsonOf({ text }: HttpResponse): unknown {
  try {
    return parseExactly(text);
  } catch {
    return null;
  }
}
