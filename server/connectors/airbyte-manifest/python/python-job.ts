/** What the service has a sandbox do. A run is JSON, whose numbers keep all digits only as text. */
export type PythonJob =
  | { load: { files: Record<string, string>; config: Record<string, unknown>; snapshot: string | null } }
  | { run: string };

/** The result of a job, as JSON. */
export type PythonAnswer = string;
