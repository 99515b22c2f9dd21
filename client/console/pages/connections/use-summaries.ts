import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { Summary } from '../../answers.ts';
import { trpc } from '../../api.ts';

const POLL_MS = 5_000;
/** The service takes 0.1 ms for each connection of the answer. */
const POLL_MS_PER_CONNECTION = 5;
const MAX_VISIBLE = 100;

/** The pause between two answers with all connections: to ask for many takes one browser at most 2 % of a processor. */
const pollOf = (count: number): number => Math.max(POLL_MS, count * POLL_MS_PER_CONNECTION);

/** All connections of the account. */
export const useSummaries = () =>
  useQuery(
    trpc.connections.summaries.queryOptions({}, { refetchInterval: ({ state }) => pollOf(state.data?.length ?? 0) }),
  );

/** While a list is scrolled, its visible rows change too often to be asked for. */
const SETTLED_MS = 250;

const NONE: ReadonlyMap<string, Summary> = new Map();

/** Visible connections as they are now, by id, where all of them are too many to be polled as often. Otherwise empty. */
export function useVisible(ids: string[], count: number): ReadonlyMap<string, Summary> {
  const [settled] = useDebouncedValue(ids.slice(0, MAX_VISIBLE).join(), SETTLED_MS);
  const enabled = pollOf(count) > POLL_MS && settled !== '';
  const { data } = useQuery(
    trpc.connections.summaries.queryOptions(
      { id: settled.split(',') },
      { enabled, refetchInterval: POLL_MS, placeholderData: keepPreviousData },
    ),
  );
  return useMemo(() => (enabled ? new Map(data?.map((one) => [one.id, one])) : NONE), [enabled, data]);
}
