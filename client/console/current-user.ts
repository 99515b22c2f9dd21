import { createContext, use } from 'react';
import type { RouterOutputs } from './api.ts';

type Me = RouterOutputs['users']['me'];
export type Permission = Me['permissions'][number];

export const MeContext = createContext<Me | null>(null);

/** Who is signed in. Only below the shell. */
export function useMe(): Me {
  const me = use(MeContext);
  if (!me) throw new Error('Nobody is signed in here');
  return me;
}

/** Whether the user may: buttons that he may not press are disabled with the reason, never hidden from view. */
export const useMay = (permission: Permission): boolean => useMe().permissions.includes(permission);
