/** Replaces secrets in responses. Sent back, it means "unchanged". */
export const MASK = '**********';
