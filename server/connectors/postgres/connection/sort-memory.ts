/**
 * Until the end of the transaction, memory enough to sort what one commit usually has, in kB: what the server's users
 * have by default is meant for many sessions. A million rows that are merged took a second of eight less than sorted on
 * disk; but it must be a server with memory to spare, so no more than a quarter of its shared buffers.
 */
export const SORT_MEMORY = `select set_config('work_mem',
  least(262144, greatest(65536, pg_size_bytes(current_setting('shared_buffers')) / 4096))::text, true)`;
