import type { ReactNode } from 'react';
import { Icon, type IconName } from './icon.tsx';

/** An empty state: what belongs here, and the next step. */
export const Empty = ({ icon, title, children }: { icon: IconName; title: string; children?: ReactNode }) => (
  <div className="empty">
    <span className="empty-icon">
      <Icon name={icon} size={26} />
    </span>
    <h2>{title}</h2>
    {children}
  </div>
);
