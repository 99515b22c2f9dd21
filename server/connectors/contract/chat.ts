/** A channel of a chat service as the interface shows it. */
export interface ChatChannel {
  id: string;
  name: string;
  is_private: boolean;
  /** Whether the service's own account is in it: elsewhere it may not be able to post. */
  is_member: boolean;
  is_archived: boolean;
  member_count: number | null;
}

export interface ChatMessage {
  channel_id: string;
  /** In the service's own markup, values escaped already. */
  text: string;
  /** What the message that began the thread was answered with; null: begins one. */
  thread: string | null;
  /** Sent along where the service has a place for it, so that a repeated message can be told from another one. */
  delivery_id: string;
}
