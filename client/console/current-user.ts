import { createContext, use } from 'react';
import type { RouterOutputs } from './api.ts';

type Me = RouterOutputs['users']['me'];
export type Permission = Me['permissions'][number];

export const CurrentUserContext = createContext<Me | null>(null);

/** The signed-in user. Works only below the shell. */
export function useCurrentUser(): Me {
  const me = use(CurrentUserContext);
  if (!me) throw new Error('CurrentUserContext has no user');
  return me;
}

/** Whether the current user has a permission. Without it, a button is disabled rather than hidden. */
export const usePermission = (permission: Permission): boolean => useCurrentUser().permissions.includes(permission);
