/** The settings of the process; the only reader of the environment is `readConfig`. */
export interface Config {
  HOST: string;
  PORT: number;
  /** Null: the embedded PostgreSQL. */
  DATABASE_URL: string | null;
  /** Absolute. */
  DATA_DIR: string;
  /** `file:///…` or `s3://bucket/prefix?…`; absent: the folder DATA_DIR/objects. */
  OBJECT_STORE_URL: string;
  SECRET_KEY: string;
  BOOTSTRAP_EMAIL: string;
  BOOTSTRAP_API_KEY: string | null;
  DEMO: boolean;
  WORKER_CONCURRENCY: number;
  LOG_LEVEL: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';
}
