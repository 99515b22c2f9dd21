/** Remedy when the log no longer continues from the state. */
export const RESET_HINT = "Reset the stream's cursor so that the next run reads the whole table again";
