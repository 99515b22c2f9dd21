/** What the service fills in for the case of a new trigger. */
export const CASE_DEFAULTS = {
  open: true,
  resolve_rule: null,
  auto_resolve: true,
  reopen_window_seconds: 86_400,
  notify_on_resolve: false,
  notify_every: null,
};
