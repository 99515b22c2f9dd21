import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { client, type RouterInputs, type RouterOutputs, trpc } from '../../api.ts';

export type Evaluation = RouterOutputs['automation']['evaluateRule'];
type Request = RouterInputs['automation']['evaluateRule'];

const DEBOUNCE_MS = 400;

/** The service's evaluation of a rule, after a pause in typing. */
export function useEvaluation(request: Request | null) {
  const [settled] = useDebouncedValue(JSON.stringify(request), DEBOUNCE_MS);
  return useQuery({
    queryKey: [...trpc.automation.evaluateRule.mutationKey(), settled],
    enabled: settled !== 'null',
    placeholderData: keepPreviousData,
    queryFn: ({ signal }): Promise<Evaluation> =>
      client.automation.evaluateRule.mutate(JSON.parse(settled) as Request, { signal }),
  });
}
