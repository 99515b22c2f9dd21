import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, useLayoutEffect, useRef, useState } from 'react';

interface VirtualListProps {
  count: number;
  /** Height of a closed row. */
  row_px: number;
  keyOf: (index: number) => string;
  children: (index: number) => ReactNode;
}

/** A long list that scrolls with the page: only visible rows are in the DOM. Rows may grow. */
export function VirtualList({ count, row_px, keyOf, children }: VirtualListProps) {
  const list = useRef<HTMLDivElement>(null);
  const [offset, setOffset] = useState(0);
  // Content above the list changes height, so the offset is measured after every render. Setting the same number again
  // does not render.
  // oxlint-disable-next-line react-hooks/exhaustive-deps
  useLayoutEffect(() => {
    const top = Math.round((list.current?.getBoundingClientRect().top ?? 0) + window.scrollY);
    setOffset(top);
  });
  const virtual = useWindowVirtualizer({
    count,
    estimateSize: () => row_px,
    overscan: 8,
    scrollMargin: offset,
    getItemKey: keyOf,
  });
  const items = virtual.getVirtualItems();
  return (
    <div ref={list} className="stream-rows" style={{ height: virtual.getTotalSize() }}>
      <ul style={{ transform: `translateY(${(items[0]?.start ?? offset) - offset}px)` }}>
        {items.map(({ index, key }) => (
          <li key={key} ref={virtual.measureElement} data-index={index} aria-setsize={count} aria-posinset={index + 1}>
            {children(index)}
          </li>
        ))}
      </ul>
    </div>
  );
}
