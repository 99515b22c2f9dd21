import { z } from 'zod';
import { VARIABLES } from '../../events/variables.ts';

const OPERATORS = [
  ...([
    'eq',
    'ne',
    'gt',
    'gte',
    'lt',
    'lte',
    'in',
    'not_in',
    'contains',
    'not_contains',
    'starts_with',
    'ends_with',
  ] as const),
  ...(['regex_matches', 'is_null', 'is_not_null'] as const),
];

const Scalar = z.union([z.string().max(1000), z.number(), z.boolean()]);

const Comparison = z
  .strictObject({
    variable: z
      .string()
      .regex(/^[a-z_]\w*$/i)
      .max(100),
    operator: z.enum(OPERATORS),
    value: z.union([Scalar, z.array(Scalar).max(100), z.null()]).optional(),
  })
  .meta({ id: 'RuleComparison' });
type Comparison = z.infer<typeof Comparison>;

export type RuleCondition = { all: RuleCondition[] } | { any: RuleCondition[] } | { not: RuleCondition } | Comparison;

/** A rule of the same size exceeds the limits of the rule language. */
const MAX_CONDITIONS = 300;
const MAX_DEPTH = 20;

/** Whether validating a value as a condition is worth the time. Looks at 300 of its parts at most. */
function isBounded(given: unknown): boolean {
  let level: unknown[] = [given];
  let parts = 0;
  for (let depth = 0; level.length > 0; depth += 1) {
    parts += level.length;
    if (depth > MAX_DEPTH || parts > MAX_CONDITIONS) return false;
    level = level.flatMap((one) => {
      if (typeof one !== 'object' || one === null) return [];
      const { all, any, not } = one as Record<string, unknown>;
      return [all, any, not === undefined ? [] : [not]].flatMap((list) => (Array.isArray(list) ? list : []));
    });
  }
  return true;
}

const children = () =>
  z
    .array(z.lazy(() => OneCondition))
    .min(1)
    .max(100);

/** A rule as a tree, for clients that build it from a form. It is stored as the equivalent rule text. */
const OneCondition: z.ZodType<RuleCondition> = z
  .union([
    z.strictObject({ all: children() }),
    z.strictObject({ any: children() }),
    z.strictObject({ not: z.lazy(() => OneCondition) }),
    Comparison,
  ])
  .meta({ id: 'RuleCondition' });

export const RuleCondition = z.preprocess((given, ctx) => {
  if (isBounded(given)) return given;
  const message = `A condition can have at most ${MAX_CONDITIONS} parts and ${MAX_DEPTH} levels`;
  ctx.addIssue({ code: 'custom', message, input: given });
  return z.NEVER;
}, OneCondition);

/** The rule text of a condition. */
export function conditionSource(condition: RuleCondition): string {
  if ('all' in condition) return joined(condition.all, ' && ');
  if ('any' in condition) return joined(condition.any, ' || ');
  if ('not' in condition) return `!(${conditionSource(condition.not)})`;
  return comparison(condition);
}

function joined(conditions: RuleCondition[], operator: string): string {
  if (conditions.length === 1) return conditionSource(conditions[0]!);
  return conditions
    .map((one) => ('all' in one || 'any' in one ? `(${conditionSource(one)})` : conditionSource(one)))
    .join(operator);
}

const INFIX: Partial<Record<Comparison['operator'], string>> = {
  eq: '==',
  ne: '!=',
  gt: '>',
  gte: '>=',
  lt: '<',
  lte: '<=',
  in: 'in',
};

function comparison({ variable, operator, value = null }: Comparison): string {
  const type = VARIABLES[variable];
  const isList = type === 'list<string>';
  const given = literal(value, type === 'double');
  switch (operator) {
    case 'is_null':
      return `${variable} == null`;
    case 'is_not_null':
      return `${variable} != null`;
    case 'not_in':
      return `!(${variable} in ${given})`;
    case 'contains':
      return isList ? `${given} in ${variable}` : `${variable}.contains(${given})`;
    case 'not_contains':
      return isList ? `!(${given} in ${variable})` : `!${variable}.contains(${given})`;
    case 'starts_with':
      return `${variable}.startsWith(${given})`;
    case 'ends_with':
      return `${variable}.endsWith(${given})`;
    case 'regex_matches':
      return `regex_matches(${variable}, ${given})`;
    default:
      return `${variable} ${INFIX[operator]} ${given}`;
  }
}

function literal(value: unknown, decimal: boolean): string {
  if (Array.isArray(value)) return `[${value.map((item) => literal(item, decimal)).join(', ')}]`;
  // Through BigInt, because String(1e21) has an exponent, which the rule language does not accept.
  if (typeof value === 'number') return decimal && Number.isInteger(value) ? `${BigInt(value)}.0` : String(value);
  return JSON.stringify(value);
}
