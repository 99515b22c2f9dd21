/** COPY does the same by itself: a column that is GENERATED ALWAYS AS IDENTITY, as a dump creates it, takes the values. */
export const OVERRIDING = 'overriding system value';
