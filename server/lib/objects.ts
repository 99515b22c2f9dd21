/** Where files live that any machine may need: a folder, or S3. Keys are relative, with `/`. */
export interface ObjectStore {
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** Null when there is no such object. */
  get(key: string): Promise<ReadableStream<Uint8Array> | null>;
  delete(key: string): Promise<void>;
}
