import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, type Input, type Output } from '../../api.ts';

export type Evaluation = Output<'automation.evaluateRule'>;
type Request = Input<'automation.evaluateRule'>;

const PAUSE_MS = 400;

/** What the service makes of a rule, after a pause in typing; with an event, whether that matches. */
export function useEvaluation(request: Request | null) {
  const [settled] = useDebouncedValue(JSON.stringify(request), PAUSE_MS);
  return useQuery({
    queryKey: ['automation.evaluateRule', settled],
    enabled: settled !== 'null',
    placeholderData: keepPreviousData,
    retry: false,
    queryFn: ({ signal }): Promise<Evaluation> =>
      api.automation.evaluateRule.mutate(JSON.parse(settled) as Request, { signal }),
  });
}
