let held = 0;

/** Memory that work needs until it ends: the process grows by it without leaving garbage. @returns ends it, once */
export function holdMemory(bytes: number): () => void {
  held += bytes;
  let left = bytes;
  return () => {
    held -= left;
    left = 0;
  };
}

/** By all work of the process, in bytes. */
export const heldMemory = () => held;
