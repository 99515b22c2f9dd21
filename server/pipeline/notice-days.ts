/** Days before an expiry at which it is announced; 0 is the expiry itself. */
export const NOTICE_DAYS: readonly number[] = [14, 7, 1, 0];
