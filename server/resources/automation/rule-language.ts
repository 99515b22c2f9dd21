import { z } from 'zod';
import { EVENT_KINDS, type EventKind } from '../../events/kinds.ts';
import { FUNCTIONS } from '../../automation/rules/language.ts';
import { sampleFacts } from '../../automation/rules/sample-facts.ts';
import { VARIABLES, VARIABLES_OF } from '../../events/variables.ts';

/** Reference of the rule language for editors and users. */
export const RuleLanguage = z.object({
  functions: z.array(z.string()),
  variables: z.record(z.string(), z.string()).meta({ description: 'Type by name.' }),
  kinds: z.array(
    z.object({
      event: z.string(),
      category: z.string(),
      severity: z.string(),
      variables: z.array(z.string()),
      sample: z.record(z.string(), z.unknown()).meta({ description: 'An event of this kind as it might be.' }),
    }),
  ),
});

export const readRuleLanguage = (): z.infer<typeof RuleLanguage> => ({
  functions: [...FUNCTIONS],
  variables: { ...VARIABLES },
  kinds: (Object.keys(EVENT_KINDS) as EventKind[]).map((event) => ({
    event,
    ...EVENT_KINDS[event],
    variables: [...VARIABLES_OF[event]],
    sample: sampleFacts(event),
  })),
});
