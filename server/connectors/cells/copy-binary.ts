/** What a COPY in binary form has before its first row: magic bytes, no flags, no extension. */
export const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');

/** What it has after its last row. COPY FROM STDIN accepts rows without it. */
export const TRAILER = Buffer.from([0xff, 0xff]);
