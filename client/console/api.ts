import { queryOptions, type UseMutationOptions } from '@tanstack/react-query';
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server';
import type { AppRouter } from '../../server/router.ts';
import { type ApiError, createApiClient } from '../api.ts';

type Inputs = inferRouterInputs<AppRouter>;
type Outputs = inferRouterOutputs<AppRouter>;
/** A procedure's name: `connections.list`. */
export type Name = { [R in keyof Outputs]: `${R}.${keyof Outputs[R] & string}` }[keyof Outputs];
type At<Tree, N extends Name> = N extends `${infer R}.${infer P}`
  ? R extends keyof Tree
    ? P extends keyof Tree[R]
      ? Tree[R][P]
      : never
    : never
  : never;
export type Input<N extends Name> = At<Inputs, N>;
export type Output<N extends Name> = At<Outputs, N>;

/** The header tells the service that its own console calls: its session counts for nobody else. */
export const CONSOLE_HEADERS = { 'x-requested-by': 'console' };

export const api = createApiClient(location.origin, undefined, { headers: () => CONSOLE_HEADERS });

type Call = (input: unknown, options?: { signal?: AbortSignal }) => Promise<unknown>;
type Procedures = Record<string, Record<string, { query: Call; mutate: Call }>>;

function procedureOf(name: Name) {
  const [router = '', procedure = ''] = name.split('.');
  return (api as unknown as Procedures)[router]![procedure]!;
}

/** Input that need not be given. */
// oxlint-disable-next-line typescript/no-generated-empty-object-type -- an object without keys is meant
type Given<I> = Record<never, never> extends I ? [I?] : undefined extends I ? [I?] : [I];

/** A read, for `useQuery(ask('connections.get', { connection_id }))`. */
export const ask = <N extends Name>(name: N, ...[input]: Given<Input<N>>) =>
  queryOptions<Output<N>, ApiError>({
    queryKey: [name, input ?? {}],
    queryFn: ({ signal }) => procedureOf(name).query(input ?? {}, { signal }) as Promise<Output<N>>,
  });

/** A change, for `useMutation(order('connections.update'))`; `useOrder` also tells the user how it went. */
export const order = <N extends Name>(name: N): UseMutationOptions<Output<N>, ApiError, Input<N>> => ({
  mutationKey: [name],
  mutationFn: (input) => procedureOf(name).mutate(input) as Promise<Output<N>>,
});
