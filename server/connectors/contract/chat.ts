/** A channel of a chat service, as the interface shows it. */
export interface ChatChannel {
  id: string;
  name: string;
  is_private: boolean;
  /** Whether the service's own account is a member. Without membership it may be unable to post. */
  is_member: boolean;
  is_archived: boolean;
  member_count: number | null;
}

export interface ChatMessage {
  channel_id: string;
  /** In the chat service's own markup; values are already escaped. */
  text: string;
  /** The thread to continue, as `postMessage` returned it; null starts a new one. */
  thread: string | null;
  /** Sent along where the chat service supports it, so that it can recognize a repeated message. */
  delivery_id: string;
}
