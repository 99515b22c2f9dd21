import { DataError } from '../../contract/errors.ts';
import { literalEval, pyText } from './python-literal.ts';
import { PyTime } from './python-time.ts';
import { Evaluator } from './evaluator.ts';
import { MACRO_NAMES, macros } from './macros.ts';
import { type Node, parseTemplate, problemsOf } from './template-nodes.ts';
import { isMapping, MismatchError, resetWork, TemplateError, truthy, UndefinedError } from './values.ts';

/** The variables that templates may use. */
const VARIABLES =
  'config parameters stream_slice stream_interval stream_partition next_page_token record response headers ' +
  'components_values stream_template_config raw_schema ' +
  'last_record last_page_size last_page_token_value property path value ' +
  'stream_state self creation_response polling_response download_target';
const KNOWN = new Set<string>([
  ...VARIABLES.split(' '),
  ...MACRO_NAMES,
  'true',
  'false',
  'none',
  'True',
  'False',
  'None',
]);
const MAX_COMPILED = 5000;

interface Compiled {
  nodes: Node[];
  /** The expression, when the template consists of nothing else. */
  single: Node | null;
}

const compiled = new Map<string, Compiled>();

function compile(text: string): Compiled {
  const known = compiled.get(text);
  if (known) return known;
  const nodes = parseTemplate(text);
  const [first] = nodes;
  const single = nodes.length === 1 && first && !['If', 'For', 'Set', 'Comment'].includes(first.type) ? first : null;
  const result = { nodes, single };
  if (compiled.size >= MAX_COMPILED) compiled.clear();
  compiled.set(text, result);
  return result;
}

export const isTemplate = (text: string): boolean => text.includes('{{') || text.includes('{%') || text.includes('{#');

/** What is wrong with a template; empty when it is valid. */
export function templateProblems(text: string): string[] {
  if (!isTemplate(text)) return [];
  try {
    return problemsOf(compile(text).nodes, (name) => KNOWN.has(name));
  } catch (error) {
    return [
      error instanceof RangeError ? 'it is nested too deeply' : error instanceof Error ? error.message : String(error),
    ];
  }
}

export type Scope = Readonly<Record<string, unknown>>;

/** What evaluating a template takes. */
export interface Interpolation {
  templates: Templates;
  scope: Scope;
}

/** Evaluates the templates of a manifest as Airbyte does. */
export class Templates {
  readonly #functions: ReturnType<typeof macros>;

  constructor(now: () => Date) {
    this.#functions = macros(now);
  }

  /** The value of a template; null when it is empty or undefined. @throws DataError naming the template */
  value(text: string, scope: Scope): unknown {
    if (!isTemplate(text)) return text === '' ? null : literalEval(text);
    const result = this.#run(text, scope);
    if (result === undefined || result === '') return null;
    if (typeof result === 'string') return literalEval(result);
    return result instanceof PyTime ? result.text() : result;
  }

  /** The value as a field gets it: empty or undefined is an empty text, and a text that is not of the type stays text. */
  field(text: string, scope: Scope, isOfType: (value: unknown) => boolean): unknown {
    const result = isTemplate(text) ? this.#run(text, scope) : text;
    if (result === undefined) return '';
    if (result instanceof PyTime) return result.text();
    if (typeof result !== 'string') return result === null || isOfType(result) ? result : pyText(result);
    const value = literalEval(result);
    return isOfType(value) ? value : result;
  }

  /** The value as text: digits and signs stay as the template has them. */
  text(text: string, scope: Scope): string | null {
    const result = isTemplate(text) ? this.#run(text, scope) : text;
    if (result === undefined || result === '' || result === null) return null;
    if (typeof result !== 'string') return pyText(result);
    const value = literalEval(result);
    return value === null ? null : typeof value === 'string' ? value : result.trim();
  }

  /**
   * A condition. Undefined, false, zero and empty values are false. A condition that values of these types do not have is
   * true: Airbyte takes the text of the template, which is not empty.
   */
  truth(text: string, scope: Scope): boolean {
    let value: unknown;
    try {
      value = this.value(text, scope);
    } catch (error) {
      if (error instanceof DataError && error.cause instanceof MismatchError) return true;
      throw error;
    }
    return value !== null && value !== 'false' && value !== 'False' && truthy(value);
  }

  /** A value with all its texts evaluated, without entries that have no value. */
  nested(value: unknown, scope: Scope): unknown {
    if (typeof value === 'string') return this.value(value, scope);
    if (Array.isArray(value)) return value.map((item) => this.nested(item, scope)).filter((item) => item !== null);
    if (!isMapping(value)) return value;
    const entries = Object.entries(value).map(([name, item]) => [
      this.text(name, scope) ?? name,
      this.nested(item, scope),
    ]);
    return Object.fromEntries(entries.filter(([, item]) => item !== null));
  }

  #run(text: string, scope: Scope): unknown {
    try {
      resetWork();
      const { nodes, single } = compile(text);
      const evaluator = new Evaluator(scope, this.#functions);
      const result = single ? evaluator.value(single) : evaluator.render(nodes);
      return typeof result === 'function' ? undefined : result;
    } catch (error) {
      if (error instanceof UndefinedError) return undefined;
      if (!(error instanceof TemplateError || error instanceof RangeError)) throw error;
      const shown = text.replaceAll(/\s+/g, ' ').slice(0, 200);
      throw new DataError('template_failed', `The template "${shown}" failed: ${error.message}`, {
        cause: error,
      });
    }
  }
}
