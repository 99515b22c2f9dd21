/** Seals and opens what must not be read in the database. `context` binds a blob to its place: elsewhere it does not open. */
export interface Secrets {
  seal(plaintext: string, context: string): string;
  /** @throws ApiError 400 `invalid_secret` when the blob is not ours, was changed, or belongs elsewhere. */
  open(blob: string, context: string): string;
  /** HMAC-SHA256 under a key derived from the service's, hexadecimal: for API keys and salted hashes. */
  hmac(purpose: string, value: string): string;
}
