export interface HttpRequest {
  method: string;
  url: URL;
  headers: Record<string, string>;
  body: string | null;
  /** It may be at, or be redirected to, an origin that gets neither credentials nor headers, such as an object store. */
  may_leave?: boolean;
}
